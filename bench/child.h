// A child process of the benchmark: started with three given descriptors and nothing else, reaped exactly once.
// A benchmark that cannot measure has no answer to give, so failures are exceptions (std::runtime_error) here.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace stitchkit::bench {

/// Kills and reaps what still runs. One thread.
class Child {
 public:
  /// argv[0] is an absolute path; the environment is `PATH=/usr/bin:/bin` alone. -1 stands for /dev/null.
  Child(const std::vector<std::string>& argv, int stdinFd, int stdoutFd, int stderrFd);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// Waits for the end. The exit code, or 128 and the signal's number.
  int wait();

 private:
  pid_t pid_ = -1;  ///< -1 once reaped
};

}  // namespace stitchkit::bench
