#include "conformance/interrupt.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>

namespace conformance {
namespace {

std::atomic<bool> signalled = false;
int wakeDescriptor = -1;

void onSignal(int) {
  const int kept = errno;
  signalled = true;
  const std::uint64_t one = 1;
  (void)!::write(wakeDescriptor, &one, sizeof one);
  errno = kept;
}

}  // namespace

bool installInterruptHandler() {
  wakeDescriptor = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wakeDescriptor < 0) {
    return false;
  }
  struct sigaction action {};
  action.sa_handler = onSignal;
  return ::sigaction(SIGINT, &action, nullptr) == 0 && ::sigaction(SIGTERM, &action, nullptr) == 0;
}

int interruptDescriptor() {
  return wakeDescriptor;
}

bool interrupted() {
  return signalled;
}

}  // namespace conformance
