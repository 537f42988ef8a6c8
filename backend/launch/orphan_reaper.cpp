#include "backend/launch/orphan_reaper.h"

#include <sys/prctl.h>
#include <sys/wait.h>

#include <boost/asio/io_context.hpp>
#include <csignal>
#include <set>

namespace stitchkit {
namespace {

struct Children {
  bool takingOrphans = false;
  std::set<pid_t> expected;
};

Children& children() {
  static Children instance;
  return instance;
}

// Stops at a child that somebody wants: when that has been collected, this is called again.
void reapOrphans() {
  while (children().takingOrphans) {
    siginfo_t found{};
    if (::waitid(P_ALL, 0, &found, WEXITED | WNOHANG | WNOWAIT) != 0 || found.si_pid == 0 ||
        children().expected.count(found.si_pid) != 0) {
      return;
    }
    ::waitpid(found.si_pid, nullptr, WNOHANG);
  }
}

}  // namespace

OrphanReaper::OrphanReaper(boost::asio::io_context& io) : ended_(io, SIGCHLD) {
  children().takingOrphans = ::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
  await();
}

OrphanReaper::~OrphanReaper() {
  children().takingOrphans = false;
}

void OrphanReaper::await() {
  ended_.async_wait([this](boost::system::error_code error, int) {
    if (!error) {
      await();
      reapOrphans();
    }
  });
}

void expectChild(pid_t child) {
  children().expected.insert(child);
}

void collectedChild(pid_t child) {
  children().expected.erase(child);
  reapOrphans();
}

}  // namespace stitchkit
