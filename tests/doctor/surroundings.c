// Runs a program in surroundings that do not isolate, as machines and containers may be:
//   surroundings [--cover PATH] [--write-protect DIR] [--noexec DIR] [--small DIR] [--read-only DIR] [--refuse KIND]
//   ... PROGRAM [ARGUMENT...]
// Mounts are in a namespace of its own. KIND: `namespaces` (as Docker's default profile does it), `pidfd`, `seccomp`.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void require(int fine, const char* what) {
  if (!fine) {
    perror(what);
    exit(120);
  }
}

static void write_text(const char* path, const char* text) {
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  require(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text), path);
  close(file);
}

// An ordinary user needs a user namespace first, in which it stays who it is.
static void own_mounts(void) {
  static int done;
  if (done) {
    return;
  }
  done = 1;
  const unsigned uid = geteuid();
  const unsigned gid = getegid();
  if (uid != 0) {
    char map[64];
    require(unshare(CLONE_NEWUSER) == 0, "user namespace");
    write_text("/proc/self/setgroups", "deny");
    snprintf(map, sizeof map, "%u %u 1", uid, uid);
    write_text("/proc/self/uid_map", map);
    snprintf(map, sizeof map, "%u %u 1", gid, gid);
    write_text("/proc/self/gid_map", map);
  }
  require(unshare(CLONE_NEWNS) == 0, "mount namespace");
  require(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "private mounts");
}

static void cover(const char* path) {
  struct stat status;
  own_mounts();
  require(stat(path, &status) == 0, path);
  if (S_ISDIR(status.st_mode)) {
    require(mount("none", path, "tmpfs", MS_RDONLY, "size=0") == 0, path);
  } else {
    require(mount("/dev/null", path, NULL, MS_BIND, NULL) == 0, path);
  }
}

static void read_only_in_place(const char* path) {
  own_mounts();
  require(mount(path, path, NULL, MS_BIND, NULL) == 0, path);
  require(mount(NULL, path, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) == 0, path);
}

static void tmpfs(const char* path, unsigned long flags, const char* options) {
  own_mounts();
  require(mount("none", path, "tmpfs", flags, options) == 0, path);
}

static void filter(struct sock_filter* program, size_t length) {
  const struct sock_fprog whole = {(unsigned short)length, program};
  require(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole) == 0,
          "filter");
}

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define UNLESS_CALL(number, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, skip)
#define ANSWER(value) BPF_STMT(BPF_RET | BPF_K, value)

static void refuse_namespaces(void) {
  struct sock_filter program[] = {
      LOAD(nr),
      UNLESS_CALL(SYS_clone3, 1),
      ANSWER(SECCOMP_RET_ERRNO | ENOSYS),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
      ANSWER(SECCOMP_RET_ALLOW),
      LOAD(args[0]),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_NEWUSER, 0, 1),
      ANSWER(SECCOMP_RET_ERRNO | EPERM),
      ANSWER(SECCOMP_RET_ALLOW),
  };
  filter(program, sizeof program / sizeof *program);
}

static void refuse_call(unsigned number, unsigned error) {
  struct sock_filter program[] = {LOAD(nr), UNLESS_CALL(number, 1), ANSWER(SECCOMP_RET_ERRNO | error),
                                  ANSWER(SECCOMP_RET_ALLOW)};
  filter(program, sizeof program / sizeof *program);
}

static void refuse_filters(void) {
  struct sock_filter program[] = {
      LOAD(nr),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
      LOAD(args[0]),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_SECCOMP, 0, 1),
      ANSWER(SECCOMP_RET_ERRNO | EPERM),
      ANSWER(SECCOMP_RET_ALLOW),
  };
  filter(program, sizeof program / sizeof *program);
}

static void refuse(const char* kind) {
  if (strcmp(kind, "namespaces") == 0) {
    refuse_namespaces();
  } else if (strcmp(kind, "pidfd") == 0) {
    refuse_call(SYS_pidfd_open, ENOSYS);
  } else if (strcmp(kind, "seccomp") == 0) {
    refuse_filters();
  } else {
    errno = EINVAL;
    require(0, kind);
  }
}

int main(int count, char** words) {
  int i = 1;
  for (; i + 1 < count && strncmp(words[i], "--", 2) == 0; i += 2) {
    const char* value = words[i + 1];
    if (strcmp(words[i], "--cover") == 0) {
      cover(value);
    } else if (strcmp(words[i], "--write-protect") == 0) {
      read_only_in_place(value);
    } else if (strcmp(words[i], "--noexec") == 0) {
      tmpfs(value, MS_NOEXEC, "mode=0777");
    } else if (strcmp(words[i], "--small") == 0) {
      tmpfs(value, 0, "mode=0777,size=64k");
    } else if (strcmp(words[i], "--read-only") == 0) {
      tmpfs(value, MS_RDONLY, "mode=0777");
    } else {
      refuse(value);
    }
  }
  require(i < count, "a program to run");
  execv(words[i], words + i);
  perror(words[i]);
  return 127;
}
