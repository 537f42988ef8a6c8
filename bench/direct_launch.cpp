#include "bench/direct_launch.h"

#include "backend/launch/launch_profile.h"
#include "bench/child.h"
#include "rpc/base/limits.h"
#include "rpc/base/unique_fd.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
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

// Reads both to their ends and forgets what was read.
void drain(const UniqueFd& first, const UniqueFd& second) {
  std::array<pollfd, 2> streams{pollfd{first.get(), POLLIN, 0}, pollfd{second.get(), POLLIN, 0}};
  std::array<char, 65536> bytes;
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    poll(streams.data(), streams.size(), -1);
    for (pollfd& stream : streams) {
      if (stream.fd >= 0 && stream.revents != 0 && read(stream.fd, bytes.data(), bytes.size()) == 0) {
        stream.fd = -1;
      }
    }
  }
}

}  // namespace

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
  std::vector<std::string> argv{"/usr/bin/bwrap"};
  argv.insert(argv.end(), profile_.begin(), profile_.end());
  argv.insert(argv.end(), command.begin(), command.end());
  OutputPipe out, err;
  Child guest(argv, -1, out.writer.get(), err.writer.get());
  out.writer.reset();
  err.writer.reset();
  drain(out.reader, err.reader);
  if (const int code = guest.wait(); code != 0) {
    throw std::runtime_error("bwrap with the sidecar's profile exited with " + std::to_string(code));
  }
}

}  // namespace stitchkit::bench
