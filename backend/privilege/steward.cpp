#include "backend/privilege/steward.h"

#include "backend/diagnosis/cause.h"
#include "backend/privilege/hand_over.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <string_view>
#include <system_error>
#include <tuple>
#include <vector>

namespace stitchkit {
namespace {

constexpr int kSocket = 3;  // in the child
constexpr std::size_t kRequestBytes = PATH_MAX;
// An answer is the kind of the error (or kDone) and four texts, each ended by NUL and cut to fit.
constexpr std::size_t kAnswerBytes = 8192;
constexpr std::size_t kTextBytes = 2000;
constexpr char kDone = '\x7f';

std::string encodeAnswer(const Result<void>& outcome) {
  if (outcome) {
    return std::string(1, kDone);
  }
  const Error& error = outcome.error();
  std::string packet(1, static_cast<char>(error.kind));
  for (const std::string* text : {&error.message, &error.hint, &error.reason, &error.privateDetail}) {
    packet += text->substr(0, kTextBytes).c_str();
    packet.push_back('\0');
  }
  return packet;
}

std::string_view takeText(std::string_view& packet) {
  const auto end = packet.find('\0');
  const auto text = packet.substr(0, end);
  packet = end == std::string_view::npos ? std::string_view() : packet.substr(end + 1);
  return text;
}

Result<void> decodeAnswer(std::string_view packet) {
  if (packet.size() == 1 && packet.front() == kDone) {
    return {};
  }
  if (packet.empty()) {
    return internalError("The state directory could not be handed over", "steward gone", EPIPE);
  }
  const auto kind = static_cast<ErrorKind>(packet.front());
  packet.remove_prefix(1);
  Error error(kind, std::string(takeText(packet)));
  error.hint = takeText(packet);
  error.reason = takeText(packet);
  error.privateDetail = takeText(packet);
  return error;
}

bool peerGone(int socket) {
  pollfd waiter{socket, 0, 0};
  return ::poll(&waiter, 1, 0) == 1 && (waiter.revents & (POLLHUP | POLLERR)) != 0;
}

// Nothing of the sidecar's stays with the child: secrets may stand in its environment, and a copy of the host's pipe
// would keep the host from seeing the end of the sidecar.
bool shedInheritance(int socket) {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    ::explicit_bzero(*entry, std::strlen(*entry));
  }
  for (int signal = 1; signal < NSIG; ++signal) {
    std::ignore = ::signal(signal, SIG_DFL);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::setsid();
  // Out of the way of the numbers below first.
  const int source = ::fcntl(socket, F_DUPFD_CLOEXEC, kSocket + 1);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const int nullSource = null < 0 ? -1 : ::fcntl(null, F_DUPFD_CLOEXEC, kSocket + 1);
  bool placed = source >= 0 && nullSource >= 0 && ::dup2(source, kSocket) == kSocket;
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    placed = placed && ::dup2(nullSource, stream) == stream;
  }
  return placed && ::chdir("/") == 0 && ::syscall(SYS_close_range, kSocket + 1, ~0U, 0) == 0;
}

[[noreturn]] void serve(int socket, const TargetUser& user) {
  if (!shedInheritance(socket)) {
    ::_exit(1);
  }
  std::array<char, kRequestBytes> request{};
  ssize_t size = 0;
  do {
    size = ::recv(kSocket, request.data(), request.size(), MSG_TRUNC);
  } while (size < 0 && errno == EINTR);
  if (size <= 0 || static_cast<std::size_t>(size) > request.size()) {
    ::_exit(0);
  }
  const auto outcome = handOverStateDirectory(std::string(request.data(), static_cast<std::size_t>(size)), user,
                                              [] { return !peerGone(kSocket); });
  const std::string answer = encodeAnswer(outcome);
  ::send(kSocket, answer.data(), answer.size(), MSG_NOSIGNAL);
  ::_exit(0);
}

}  // namespace

Steward::Steward(Steward&& other) noexcept : socket_(std::move(other.socket_)), pid_(std::exchange(other.pid_, -1)) {}

Steward& Steward::operator=(Steward&& other) noexcept {
  if (this != &other) {
    dismiss();
    socket_ = std::move(other.socket_);
    pid_ = std::exchange(other.pid_, -1);
  }
  return *this;
}

Result<Steward> Steward::start(const TargetUser& user) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return internalError("The sidecar could not start", "socketpair", errno);
  }
  UniqueFd ours(ends[0]);
  const UniqueFd theirs(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) {
    return internalError("The sidecar could not start", "fork", errno);
  }
  if (pid == 0) {
    serve(theirs.get(), user);
  }
  return Steward(std::move(ours), pid);
}

Result<void> Steward::handOver(const std::string& path) {
  if (!socket_) {
    return {};
  }
  std::error_code failure;
  const std::string whole = std::filesystem::absolute(path, failure).string();
  if (failure || whole.size() >= kRequestBytes) {
    return unavailableBecause("The state directory could not be used", Cause::kStateDirectoryPath)
        .withPrivate("relative to a lost directory, or too long");
  }
  if (::send(socket_.get(), whole.data(), whole.size(), MSG_NOSIGNAL) < 0) {
    return internalError("The state directory could not be handed over", "ask the steward", errno);
  }
  std::array<char, kAnswerBytes> answer{};
  ssize_t size = 0;
  do {
    size = ::recv(socket_.get(), answer.data(), answer.size(), 0);
  } while (size < 0 && errno == EINTR);
  return decodeAnswer(std::string_view(answer.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))));
}

void Steward::dismiss() noexcept {
  socket_.reset();
  if (pid_ < 0) {
    return;
  }
  const pid_t pid = std::exchange(pid_, -1);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace stitchkit
