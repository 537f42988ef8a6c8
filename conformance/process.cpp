#include "conformance/process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "conformance/interrupt.h"

namespace conformance {
namespace {

constexpr std::size_t kErrorTail = 8192;
constexpr int kStrayDescriptor = 7;
constexpr std::size_t kReadSize = 65536;

struct Pipe {
  Descriptor reader;
  Descriptor writer;
};

std::optional<Pipe> makePipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return std::nullopt;
  }
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

void makeNonBlocking(const Descriptor& descriptor) {
  ::fcntl(descriptor.get(), F_SETFL, ::fcntl(descriptor.get(), F_GETFL) | O_NONBLOCK);
}

/// posix_spawnp with the given streams; the child gets default signals, an empty mask and one stray descriptor.
int spawn(pid_t& pid, const std::vector<std::string>& command, int in, int out, int err) {
  std::vector<char*> arguments;
  for (const auto& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, 0);
  posix_spawn_file_actions_adddup2(&actions, out, 1);
  posix_spawn_file_actions_adddup2(&actions, err, 2);
  // What a careless host does: a descriptor and a secret in the environment that no guest may see.
  posix_spawn_file_actions_addopen(&actions, kStrayDescriptor, "/dev/null", O_RDONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigfillset(&signals);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const int failure = ::posix_spawnp(&pid, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return failure;
}

/// Appends what can be read now. False at the end of the stream.
bool readInto(const Descriptor& from, std::string& buffer) {
  std::array<char, kReadSize> block{};
  for (;;) {
    const ssize_t count = ::read(from.get(), block.data(), block.size());
    if (count > 0) {
      buffer.append(block.data(), static_cast<std::size_t>(count));
      if (static_cast<std::size_t>(count) < block.size()) {
        return true;
      }
    } else if (count == 0) {
      return false;
    } else if (errno != EINTR) {
      return errno == EAGAIN;
    }
  }
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.fd_;
    other.fd_ = -1;
  }
  return *this;
}

void Descriptor::reset() {
  if (fd_ >= 0) {
    ::close(fd_);
    fd_ = -1;
  }
}

std::unique_ptr<Process> Process::start(const std::vector<std::string>& command, std::string& problem) {
  auto in = makePipe();
  auto out = makePipe();
  auto err = makePipe();
  if (!in || !out || !err) {
    problem = std::string("no pipe: ") + std::strerror(errno);
    return nullptr;
  }
  std::unique_ptr<Process> process(new Process());
  const int failure = spawn(process->pid_, command, in->reader.get(), out->writer.get(), err->writer.get());
  if (failure != 0) {
    process->pid_ = -1;
    problem = command[0] + " cannot be started: " + std::strerror(failure);
    return nullptr;
  }
  process->pidfd_ = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, process->pid_, 0)));
  process->input_ = std::move(in->writer);
  process->output_ = std::move(out->reader);
  process->errors_ = std::move(err->reader);
  makeNonBlocking(process->input_);
  makeNonBlocking(process->output_);
  makeNonBlocking(process->errors_);
  return process;
}

Process::~Process() {
  if (pid_ > 0 && !ending_) {
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

void Process::closeOutput() {
  output_.reset();
  received_.clear();
}

void Process::signal(int number) const {
  if (!ending_) {
    ::kill(pid_, number);
  }
}

bool Process::wait(const std::function<bool()>& done, Deadline deadline) {
  pollOnce(0);
  while (!done()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0 || interrupted()) {
      return false;
    }
    pollOnce(static_cast<int>(std::min<long>(left.count(), 60000)));
  }
  return true;
}

bool Process::inputTaken() const {
  int waiting = 0;
  return !input_.open() ||
         (sent_ == outgoing_.size() && ::ioctl(input_.get(), FIONREAD, &waiting) == 0 && waiting == 0);
}

void Process::pollOnce(int timeoutMs) {
  std::array<pollfd, 5> watched = {{{sent_ == outgoing_.size() ? -1 : input_.get(), POLLOUT, 0},
                                    {output_.get(), POLLIN, 0},
                                    {errors_.get(), POLLIN, 0},
                                    {ending_ ? -1 : pidfd_.get(), POLLIN, 0},
                                    {interruptDescriptor(), POLLIN, 0}}};
  if (::poll(watched.data(), watched.size(), timeoutMs) <= 0) {
    return;
  }
  if (watched[0].revents != 0) {
    writeSome();
  }
  if (watched[1].revents != 0) {
    readOutput();
  }
  if (watched[2].revents != 0) {
    readErrors();
  }
  if (watched[3].revents != 0) {
    reap();
  }
}

void Process::writeSome() {
  const ssize_t count = ::write(input_.get(), outgoing_.data() + sent_, outgoing_.size() - sent_);
  if (count > 0) {
    sent_ += static_cast<std::size_t>(count);
    if (sent_ == outgoing_.size()) {
      outgoing_.clear();
      sent_ = 0;
    }
  } else if (count < 0 && errno != EAGAIN && errno != EINTR) {
    input_.reset();
  }
}

void Process::readOutput() {
  if (!readInto(output_, received_)) {
    output_.reset();
  }
}

void Process::readErrors() {
  if (!readInto(errors_, errorTail_)) {
    errors_.reset();
  }
  if (errorTail_.size() > kErrorTail) {
    errorTail_.erase(0, errorTail_.size() - kErrorTail);
  }
}

void Process::reap() {
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) {
    return;
  }
  ending_ = WIFEXITED(status) ? Ending{WEXITSTATUS(status), std::nullopt} : Ending{std::nullopt, WTERMSIG(status)};
}

}  // namespace conformance
