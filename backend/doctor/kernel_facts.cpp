#include "backend/doctor/kernel_facts.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>

#include "rpc/base/unique_fd.h"

namespace stitchkit {
namespace {

// None of the arguments used here is valid, so a kernel that has the call says EINVAL or EBADF. A filter that does not
// know a call says EPERM or ENOSYS.
bool has(long result) {
  return result >= 0 || (errno != ENOSYS && errno != EPERM);
}

bool hasOpenat2() {
  open_how how{};
  how.flags = O_PATH;
  return has(::syscall(SYS_openat2, -1, ".", &how, sizeof how));
}

bool hasSeccomp() {
  const unsigned action = SECCOMP_RET_ERRNO;
  return ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

bool hasMemoryFiles() {
  const UniqueFd file(::memfd_create("stitchkit", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  return has(file.get());
}

}  // namespace

KernelFacts readKernelFacts() {
  constexpr unsigned kNoFlags = ~0U;
  KernelFacts facts;
  utsname name{};
  if (::uname(&name) == 0) {
    facts.release = name.release;
  }
  const auto need = [&facts](const char* call, bool there) {
    if (!there) {
      facts.missing.emplace_back(call);
    }
  };
  need("pidfd_open", has(::syscall(SYS_pidfd_open, -1, kNoFlags)));
  need("pidfd_send_signal", has(::syscall(SYS_pidfd_send_signal, -1, 0, nullptr, kNoFlags)));
  need("close_range", has(::syscall(SYS_close_range, 1U, 0U, kNoFlags)));
  need("renameat2", has(::syscall(SYS_renameat2, -1, "", -1, "", kNoFlags)));
  need("memfd_create", hasMemoryFiles());
  facts.openat2 = hasOpenat2();
  facts.seccomp = hasSeccomp();
  return facts;
}

}  // namespace stitchkit
