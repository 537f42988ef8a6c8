#include "backend/launch/process_watch.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <utility>

namespace stitchkit {

ProcessWatch::ProcessWatch(boost::asio::io_context& io) : pidfd_(io) {}

void ProcessWatch::start(UniqueFd pidfd, std::function<void()> ended) {
  pidfd_.assign(pidfd.release());
  arm(std::move(ended));
}

void ProcessWatch::arm(std::function<void()> ended) {
  pidfd_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                    [this, ended = std::move(ended)](boost::system::error_code error) mutable {
                      if (error) {
                        return;
                      }
                      if (this->ended()) {
                        ended();
                      } else {
                        arm(std::move(ended));
                      }
                    });
}

bool ProcessWatch::ended() noexcept {
  pollfd waiter{pidfd_.native_handle(), POLLIN, 0};
  return ::poll(&waiter, 1, 0) == 1;
}

void ProcessWatch::kill() noexcept {
  if (started()) {
    ::syscall(SYS_pidfd_send_signal, pidfd_.native_handle(), SIGKILL, nullptr, 0);
  }
}

}  // namespace stitchkit
