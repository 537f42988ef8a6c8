#include "conformance/host_files.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "conformance/bytes.h"
#include "conformance/interrupt.h"

namespace conformance {
namespace {

namespace fs = std::filesystem;
using Problem = std::optional<std::string>;

Problem failed(const std::string& what, const std::string& path) {
  return what + " " + path + ": " + std::strerror(errno);
}

/// Gives `path` to the owner of its directory. Only root can, and only root needs to.
void giveToOwner(const std::string& path) {
  struct stat parent {};
  if (::geteuid() == 0 && ::stat(fs::path(path).parent_path().c_str(), &parent) == 0) {
    (void)::lchown(path.c_str(), parent.st_uid, parent.st_gid);
  }
}

void replaceAll(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

}  // namespace

CaseDirectory::CaseDirectory() {
  std::error_code ignored;
  std::string pattern = (fs::temp_directory_path(ignored) / "conformance-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    return;
  }
  root_ = pattern;
  const bool made = ::chmod(root_.c_str(), 0755) == 0 && ::mkdir(state().c_str(), 0711) == 0 &&
                    ::mkdir(outside().c_str(), 0777) == 0 && ::chmod(outside().c_str(), 0777) == 0 &&
                    ::chmod(state().c_str(), 0711) == 0;
  if (!made) {
    root_.clear();
  }
}

CaseDirectory::~CaseDirectory() {
  if (root_.empty()) {
    return;
  }
  std::error_code error;
  fs::remove_all(root_, error);
  if (error) {  // a guest that was about to end made a file meanwhile
    fs::remove_all(root_, error);
  }
}

void CaseDirectory::clearOutside() const {
  std::error_code error;
  for (fs::directory_iterator at(outside(), error), end; at != end; at.increment(error)) {
    fs::remove_all(at->path(), error);
  }
}

std::string HostFiles::resolve(std::string text, const std::string& backendName, const std::string& session) const {
  const fs::path home = directory_.state() / sha256Hex(backendName);
  const fs::path sessionPath = home / "sessions" / session;
  replaceAll(text, "{workspace}", (sessionPath / "workspace").string());
  replaceAll(text, "{session}", sessionPath.string());
  replaceAll(text, "{namespace}", home.string());
  replaceAll(text, "{state}", directory_.state().string());
  replaceAll(text, "{outside}", directory_.outside().string());
  replaceAll(text, "{authority}", directory_.authority().string());
  return text;
}

Problem HostFiles::makeFile(const std::string& path, std::string_view bytes, std::optional<int> mode) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!file.open()) {
    return failed("cannot make the file", path);
  }
  while (!bytes.empty()) {
    const ssize_t count = ::write(file.get(), bytes.data(), bytes.size());
    if (count <= 0) {
      return failed("cannot write", path);
    }
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  giveToOwner(path);
  return setMode(path, mode.value_or(0644));
}

Problem HostFiles::setSize(const std::string& path, std::uintmax_t bytes) {
  return ::truncate(path.c_str(), static_cast<off_t>(bytes)) == 0 ? Problem() : failed("cannot resize", path);
}

Problem HostFiles::makeLink(const std::string& path, const std::string& target) {
  if (::symlink(target.c_str(), path.c_str()) != 0) {
    return failed("cannot make the link", path);
  }
  giveToOwner(path);
  return std::nullopt;
}

Problem HostFiles::makeHardLink(const std::string& path, const std::string& target) {
  return ::link(target.c_str(), path.c_str()) == 0 ? Problem() : failed("cannot make the hard link", path);
}

Problem HostFiles::makeSocket(const std::string& path) {
  const fs::path at(path);
  const Descriptor directory(::open(at.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // An address holds 107 bytes; the descriptor stands for the longer path.
  const std::string shortPath = "/proc/self/fd/" + std::to_string(directory.get()) + "/" + at.filename().string();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  shortPath.copy(address.sun_path, sizeof address.sun_path - 1);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return failed("cannot make the socket", path);
  }
  giveToOwner(path);
  return std::nullopt;
}

Problem HostFiles::makeDirectory(const std::string& path, std::optional<int> mode) {
  if (::mkdir(path.c_str(), 0755) != 0) {
    return failed("cannot make the directory", path);
  }
  giveToOwner(path);
  return setMode(path, mode.value_or(0755));
}

Problem HostFiles::makeUnreadFifo(const std::string& path) {
  if (::mkfifo(path.c_str(), 0666) != 0) {
    return failed("cannot make the FIFO", path);
  }
  giveToOwner(path);
  return setMode(path, 0666);
}

Problem HostFiles::makeFifo(const std::string& path) {
  if (Problem problem = makeUnreadFifo(path)) {
    return problem;
  }
  Descriptor reader(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!reader.open()) {
    return failed("cannot open the FIFO", path);
  }
  fifos_[path].reader = std::move(reader);
  return std::nullopt;
}

Problem HostFiles::move(const std::string& from, const std::string& to) {
  return ::rename(from.c_str(), to.c_str()) == 0 ? Problem() : failed("cannot move to", to);
}

Problem HostFiles::remove(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  return error ? Problem("cannot remove " + path + ": " + error.message()) : Problem();
}

Problem HostFiles::setMode(const std::string& path, int mode) {
  return ::chmod(path.c_str(), static_cast<mode_t>(mode)) == 0 ? Problem() : failed("cannot set the mode of", path);
}

bool HostFiles::readFifo(Fifo& fifo, bool noWriter) {
  std::array<char, 4096> block{};
  const ssize_t count = ::read(fifo.reader.get(), block.data(), block.size());
  if (count > 0) {
    fifo.came.append(block.data(), static_cast<std::size_t>(count));
  }
  fifo.ended = fifo.ended || (count == 0 && noWriter);
  return !fifo.ended;
}

Problem HostFiles::awaitFifo(const std::string& path, const std::function<bool(const Fifo&)>& done,
                             const Meanwhile& meanwhile, Deadline deadline) {
  const auto found = fifos_.find(path);
  if (found == fifos_.end()) {
    return "the case has not made the FIFO " + path;
  }
  Fifo& fifo = found->second;
  while (!done(fifo)) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0 || interrupted()) {
      return "the time was up; through the FIFO came " + show(Json(fifo.came)) +
             (fifo.ended ? ", then its end" : ", and it is still open");
    }
    std::array<pollfd, 3> watched = {
        {{fifo.reader.get(), POLLIN, 0}, {interruptDescriptor(), POLLIN, 0}, {meanwhile.descriptor(), POLLIN, 0}}};
    if (::poll(watched.data(), watched.size(), static_cast<int>(std::min<long>(left.count(), 60000))) <= 0) {
      continue;
    }
    if (watched[2].revents != 0) {
      if (Problem problem = meanwhile.readable()) {
        return problem;
      }
    }
    if (watched[0].revents != 0 && !readFifo(fifo, (watched[0].revents & POLLHUP) != 0) && !done(fifo)) {
      return "the FIFO's last writer is gone; through it came " + show(Json(fifo.came));
    }
  }
  return std::nullopt;
}

Problem HostFiles::awaitFifoText(const std::string& path, const std::string& text, const Meanwhile& meanwhile,
                                 Deadline deadline) {
  return awaitFifo(
      path, [&](const Fifo& fifo) { return fifo.came.find(text) != std::string::npos; }, meanwhile, deadline);
}

Problem HostFiles::awaitFifoEnd(const std::string& path, const Meanwhile& meanwhile, Deadline deadline) {
  return awaitFifo(
      path, [](const Fifo& fifo) { return fifo.ended; }, meanwhile, deadline);
}

}  // namespace conformance
