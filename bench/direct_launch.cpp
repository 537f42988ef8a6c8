#include "bench/direct_launch.h"

#include "bench/child.h"
#include "rpc/base/unique_fd.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <system_error>

namespace stitchkit::bench {

namespace fs = std::filesystem;

namespace {

void makeEtc(const fs::path& etc) {
  fs::create_directories(etc);
  std::ofstream(etc / "passwd") << "agent:x:1000:1000:Agent:/workspace:/bin/sh\n";
  std::ofstream(etc / "group") << "agent:x:1000:\n";
  std::ofstream(etc / "hosts") << "127.0.0.1 localhost\n127.0.1.1 sandbox.localdomain sandbox\n";
  std::ofstream(etc / "nsswitch.conf") << "passwd: files\ngroup: files\nhosts: files dns\n";
  fs::copy_file("/etc/ld.so.cache", etc / "ld.so.cache");
}

std::vector<std::string> makeProfile(const fs::path& etc, const fs::path& workspace) {
  std::vector<std::string> profile{
      "--unshare-user", "--unshare-all", "--disable-userns",  "--uid",         "1000",       "--gid", "1000",
      "--hostname",     "sandbox",       "--die-with-parent", "--new-session", "--cap-drop", "ALL",   "--ro-bind",
      "/usr",           "/usr"};
  for (const char* name : {"bin", "sbin", "lib", "lib64"}) {
    const fs::path path = fs::path("/") / name;
    if (fs::is_symlink(path)) {
      profile.insert(profile.end(), {"--symlink", fs::read_symlink(path), path});
    } else if (fs::exists(path)) {
      profile.insert(profile.end(), {"--ro-bind", path, path});
    }
  }
  profile.insert(
      profile.end(),
      {"--proc",       "/proc",         "--dev",    "/dev",       "--size",       "67108864", "--tmpfs",    "/dev/shm",
       "--remount-ro", "/dev",          "--size",   "268435456",  "--tmpfs",      "/tmp",     "--ro-bind",  etc,
       "/etc",         "--bind",        workspace,  "/workspace", "--remount-ro", "/",        "--clearenv", "--setenv",
       "PATH",         "/usr/bin:/bin", "--setenv", "HOME",       "/workspace",   "--chdir",  "/workspace", "--"});
  return profile;
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

DirectLaunch::DirectLaunch(const fs::path& directory) {
  fs::create_directories(directory / "workspace");
  makeEtc(directory / "etc");
  profile_ = makeProfile(directory / "etc", directory / "workspace");
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
