#include "bench/direct_launch.h"

#include "backend/launch/launch_profile.h"
#include "bench/child.h"
#include "rpc/base/limits.h"
#include "rpc/base/unique_fd.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <stdexcept>
#include <system_error>

namespace stitchkit::bench {

namespace fs = std::filesystem;

namespace {

std::vector<std::string> profileFor(const fs::path& workspace, const SupportPaths& support) {
  LaunchProfile profile;
  profile.workspace = workspace;
  profile.etcDirectory = support.etcDirectory;
  profile.helper = support.helper;
  profile.tmpBytes = static_cast<std::uint64_t>(limits::kTmpBytes);
  profile.system = probeSystemLayout();
  std::vector<std::string> arguments = bubblewrapArguments(profile);
  // Without the filter of system calls, which costs bwrap a third of a millisecond: by hand nobody gives it one.
  const auto filter = std::find(arguments.begin(), arguments.end(), "--seccomp");
  arguments.erase(filter, filter + 2);
  arguments.emplace_back("--");
  return arguments;
}

struct OutputPipe {
  UniqueFd reader, writer;

  OutputPipe() {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) {
      throw std::system_error(errno, std::generic_category(), "pipe2");
    }
    reader.reset(fds[0]);
    writer.reset(fds[1]);
  }
};

// Reads all to their ends and forgets what was read.
void drain(std::vector<pollfd> streams) {
  std::array<char, 65536> bytes;
  for (std::size_t open = streams.size(); open > 0;) {
    poll(streams.data(), streams.size(), -1);
    for (pollfd& stream : streams) {
      if (stream.fd >= 0 && stream.revents != 0 && read(stream.fd, bytes.data(), bytes.size()) == 0) {
        stream.fd = -1;
        --open;
      }
    }
  }
}

/// A program whose output somebody wants.
class Running {
 public:
  explicit Running(const std::vector<std::string>& argv) : child_(argv, -1, out_.writer.get(), err_.writer.get()) {
    out_.writer.reset();
    err_.writer.reset();
  }

  void addStreams(std::vector<pollfd>* streams) const {
    streams->push_back({out_.reader.get(), POLLIN, 0});
    streams->push_back({err_.reader.get(), POLLIN, 0});
  }
  void reap() {
    if (const int code = child_.wait(); code != 0) {
      throw std::runtime_error("a program to compare with exited with " + std::to_string(code));
    }
  }

 private:
  OutputPipe out_, err_;
  Child child_;
};

void runAll(const std::vector<std::string>& argv, int programs) {
  std::vector<std::unique_ptr<Running>> all;
  std::vector<pollfd> streams;
  for (int i = 0; i < programs; ++i) {
    all.push_back(std::make_unique<Running>(argv));
    all.back()->addStreams(&streams);
  }
  drain(std::move(streams));
  for (const auto& one : all) {
    one->reap();
  }
}

}  // namespace

void runBare(const std::vector<std::string>& command) {
  runAll(command, 1);
}

DirectLaunch::DirectLaunch(const fs::path& directory) : support_(directory / "support") {
  const fs::path workspace = directory / "workspace";
  fs::create_directories(workspace);
  const Result<SupportPaths> support = support_.ensure();
  if (!support) {
    throw std::runtime_error(support.error().message + " " + support.error().privateDetail);
  }
  profile_ = profileFor(workspace, support.value());
}

void DirectLaunch::run(const std::vector<std::string>& command) const {
  runTogether(command, 1);
}

void DirectLaunch::runTogether(const std::vector<std::string>& command, int guests) const {
  std::vector<std::string> argv{"/usr/bin/bwrap"};
  argv.insert(argv.end(), profile_.begin(), profile_.end());
  argv.insert(argv.end(), command.begin(), command.end());
  runAll(argv, guests);
}

}  // namespace stitchkit::bench
