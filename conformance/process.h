// One running implementation: a child process with three pipes, all of it driven by poll(2).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace conformance {

using Deadline = std::chrono::steady_clock::time_point;

/// Closes itself.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { reset(); }

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool open() const { return fd_ >= 0; }
  void reset();

 private:
  int fd_ = -1;
};

/// How a process ended: its exit code, or the signal that killed it.
struct Ending {
  std::optional<int> exitCode;
  std::optional<int> signal;
};

/// Not thread-safe; used by the thread that made it. The destructor kills the child and waits for it.
class Process {
 public:
  /// Starts the command with a clean signal state. On failure null, and `problem` says why.
  static std::unique_ptr<Process> start(const std::vector<std::string>& command, std::string& problem);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  /// Queues bytes for stdin; they travel while one waits.
  void send(std::string_view bytes) { outgoing_.append(bytes); }
  void closeInput() { input_.reset(); }
  void closeOutput();
  void signal(int number) const;

  /// Moves bytes until `done` says so (true) or the deadline passes (false).
  bool wait(const std::function<bool()>& done, Deadline deadline);
  /// Nothing queued, and the child has taken every byte out of the pipe; also true when it closed its input.
  [[nodiscard]] bool inputTaken() const;
  [[nodiscard]] bool inputFlushed() const { return sent_ == outgoing_.size() || !input_.open(); }
  /// Readable when something came; -1 after its end.
  [[nodiscard]] int outputDescriptor() const { return output_.get(); }
  [[nodiscard]] bool outputEnded() const { return !output_.open(); }
  [[nodiscard]] bool ended() const { return ending_.has_value(); }
  [[nodiscard]] const std::optional<Ending>& ending() const { return ending_; }

  /// Bytes of stdout since the last call.
  std::string takeOutput() { return std::exchange(received_, {}); }
  [[nodiscard]] const std::string& errorTail() const { return errorTail_; }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  Process() = default;
  void pollOnce(int timeoutMs);
  void writeSome();
  void readOutput();
  void readErrors();
  void reap();

  pid_t pid_ = -1;
  Descriptor pidfd_;
  Descriptor input_;
  Descriptor output_;
  Descriptor errors_;
  std::string outgoing_;
  std::size_t sent_ = 0;  ///< so many bytes of it are gone
  std::string received_;
  std::string errorTail_;
  std::optional<Ending> ending_;
};

}  // namespace conformance
