// restricted [--openat2 ENOSYS|EPERM] [--uid N] PROGRAM [ARGUMENT...]
// Executes PROGRAM with openat2 answered by that errno (as an old kernel or a container's filter does), and as that
// user when started by root. SANDBOX_TEST_OPENAT2 tells the tests what to expect.
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

bool maskOpenat2(unsigned answer) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | answer),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{4, code};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

bool become(unsigned id) {
  return ::geteuid() != 0 ||
         (::setgroups(0, nullptr) == 0 && ::setresgid(id, id, id) == 0 && ::setresuid(id, id, id) == 0);
}

}  // namespace

int main(int argc, char** argv) {
  int next = 1;
  for (; next + 1 < argc && std::string_view(argv[next]).substr(0, 2) == "--"; next += 2) {
    const std::string_view option = argv[next];
    const std::string_view value = argv[next + 1];
    const bool done = option == "--uid" ? become(static_cast<unsigned>(std::atoi(argv[next + 1])))
                                        : option == "--openat2" && maskOpenat2(value == "EPERM" ? EPERM : ENOSYS) &&
                                              ::setenv("SANDBOX_TEST_OPENAT2", argv[next + 1], 1) == 0;
    if (!done) {
      std::perror(argv[next]);
      return 1;
    }
  }
  if (next < argc) {
    ::execv(argv[next], argv + next);
    std::perror(argv[next]);
  }
  return 1;
}
