#include "backend/launch/warden.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

#include "backend/cgroups/cgroup_files.h"
#include "backend/launch/descriptors.h"

namespace stitchkit {
namespace {

constexpr int kSocket = 3;  // the warden's only descriptor beside the standard ones
// For so long it waits for the ends of what it has killed.
constexpr useconds_t kRemovalIntervalUs = 5000;
constexpr int kRemovals = 1000;

union PidfdControl {
  cmsghdr header;
  char bytes[CMSG_SPACE(sizeof(int))];
};

// One pidfd, -1 for a message without one, or nothing when the sidecar's end is closed.
bool receivePidfd(int& pidfd) {
  char byte = 0;
  iovec part{&byte, 1};
  PidfdControl control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  ssize_t size = 0;
  do {
    size = ::recvmsg(kSocket, &message, MSG_CMSG_CLOEXEC);
  } while (size < 0 && errno == EINTR);
  const cmsghdr* header = size > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  pidfd = -1;
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    std::memcpy(&pidfd, CMSG_DATA(header), sizeof pidfd);
  }
  return size > 0;
}

// A bwrap that the guests' init belongs to ends a moment after them. Nothing tells of that: it is no child of ours.
void removeGroups(const std::vector<std::string>& cgroups) {
  for (int attempt = 0; attempt < kRemovals; ++attempt) {
    bool gone = true;
    for (const std::string& directory : cgroups) {
      gone = removeCgroups(directory) && gone;
    }
    if (gone) {
      return;
    }
    ::usleep(kRemovalIntervalUs);
  }
}

[[noreturn]] void guard(const std::vector<std::string>& cgroups) {
  std::vector<pollfd> watched{{kSocket, POLLIN, 0}};
  for (;;) {
    if (::poll(watched.data(), watched.size(), -1) < 0) {
      continue;
    }
    for (std::size_t i = watched.size() - 1; i > 0; --i) {
      if (watched[i].revents != 0) {
        ::close(watched[i].fd);
        watched.erase(watched.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    if (watched[0].revents == 0) {
      continue;
    }
    int pidfd = -1;
    if (!receivePidfd(pidfd)) {
      break;
    }
    if (pidfd >= 0) {
      watched.push_back({pidfd, POLLIN, 0});
    }
  }
  for (const pollfd& init : watched) {
    ::syscall(SYS_pidfd_send_signal, init.fd, SIGKILL, nullptr, 0);
  }
  removeGroups(cgroups);
  ::_exit(0);
}

// In the child: nothing of the sidecar is kept but the socket, and no signal to its group or terminal ends it early.
[[noreturn]] void becomeWarden(int socket, const std::vector<std::string>& cgroups) {
  ::prctl(PR_SET_NAME, "sandbox-warden");
  ::setsid();
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2}) {
    std::ignore = ::signal(number, SIG_IGN);
  }
  const int null = ::open("/dev/null", O_RDWR);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    ::dup2(null, standard);
  }
  if (socket != kSocket) {
    ::dup2(socket, kSocket);
  }
  ::close_range(kSocket + 1, ~0U, 0);
  guard(cgroups);
}

}  // namespace

Result<Warden> Warden::start(std::vector<std::string> cgroups) {
  Result<SocketPair> pair = makeSocketPair();
  if (!pair) {
    return std::move(pair).error();
  }
  const pid_t pid = ::fork();
  if (pid < 0) {
    return launchResourceError("fork", errno);
  }
  if (pid == 0) {
    becomeWarden(pair->theirs.get(), cgroups);
  }
  return Warden(std::move(pair->ours), pid, std::move(cgroups));
}

Warden::Warden(Warden&& other) noexcept
    : socket_(std::move(other.socket_)), pid_(std::exchange(other.pid_, -1)), cgroups_(std::move(other.cgroups_)) {}

Warden::~Warden() {
  socket_.reset();
  if (pid_ > 0) {
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

Result<void> Warden::watch(int initPidfd) {
  int error = send(initPidfd);
  if (error == EPIPE || error == ECONNRESET) {
    // Somebody killed it. Guests that live already keep their parent-death signals; later ones get a new one.
    Result<Warden> next = start(cgroups_);
    if (!next) {
      return std::move(next).error();
    }
    socket_ = std::move(next->socket_);
    pid_ = std::exchange(next->pid_, -1);
    ++generation_;
    error = send(initPidfd);
  }
  return error == 0 ? Result<void>() : launchResourceError("warden", error);
}

bool Warden::lives(std::uint64_t generation) const noexcept {
  pollfd waiter{socket_.get(), 0, 0};
  return generation == generation_ && ::poll(&waiter, 1, 0) == 0;
}

// 0 or errno.
int Warden::send(int initPidfd) {
  char byte = 'w';
  iovec part{&byte, 1};
  PidfdControl control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &initPidfd, sizeof initPidfd);
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent < 0 ? errno : 0;
}

}  // namespace stitchkit
