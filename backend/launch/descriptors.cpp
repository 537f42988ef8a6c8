#include "backend/launch/descriptors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "backend/diagnosis/cause.h"

namespace stitchkit {

Error launchResourceError(std::string_view operation, int errnoNumber) {
  constexpr std::string_view kWhat = "A guest could not be started";
  std::string detail = std::string(operation) + ": " + errnoName(errnoNumber);
  switch (errnoNumber) {
    case EMFILE:
    case ENFILE:
      return unavailableBecause(kWhat, Cause::kOpenFilesLimited).withPrivate(std::move(detail));
    case EAGAIN:
      return unavailableBecause(kWhat, Cause::kProcessesLimited).withPrivate(std::move(detail));
    default:
      return Error(ErrorKind::kUnavailable, std::string(kWhat)).withPrivate(std::move(detail));
  }
}

Result<Pipe> makePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return launchResourceError("pipe2", errno);
  }
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Result<SocketPair> makeSocketPair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return launchResourceError("socketpair", errno);
  }
  return SocketPair{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Result<UniqueFd> openNull() {
  UniqueFd fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!fd) {
    return launchResourceError("open null device", errno);
  }
  return fd;
}

Result<UniqueFd> sealedMemory(std::string_view bytes) {
  UniqueFd fd(::memfd_create("stitchkit", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) {
    return launchResourceError("memfd_create", errno);
  }
  std::size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t count =
        ::pwrite(fd.get(), bytes.data() + written, bytes.size() - written, static_cast<off_t>(written));
    if (count < 0 && errno != EINTR) {
      return launchResourceError("write memory file", errno);
    }
    written += count > 0 ? static_cast<std::size_t>(count) : 0;
  }
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0) {
    return launchResourceError("seal memory file", errno);
  }
  return fd;
}

}  // namespace stitchkit
