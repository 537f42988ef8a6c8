/* The launched program of every sandbox: takes one packet from the sidecar, applies it, becomes the guest's program.
 * It is the last thing that runs before a guest's code, and the first that knows that set-up is done.
 * launch_protocol.h is the agreement. */
#define _GNU_SOURCE
#include "launch_protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guest_files.h"

enum { kStreams = 3, kMaxDescriptors = kStreams + 1 };

union DescriptorControl {
  struct cmsghdr header;
  char bytes[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
};

/* The payload's strings, taken one by one; the last byte is known to be NUL. */
struct Strings {
  char* at;
  char* end;
};

/* The pages of both are there before a command comes. */
static union {
  struct LaunchPacket packet;
  char bytes[LAUNCH_PACKET_BYTES];
} received;
static char* fewStrings[512];

static int sendWithDescriptor(const void* bytes, size_t size, int fd) {
  struct iovec part = {(void*)bytes, size};
  union DescriptorControl control;
  memset(&control, 0, sizeof control);
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (fd >= 0) {
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(sizeof(int));
    struct cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  ssize_t sent;
  do {
    sent = sendmsg(LAUNCH_CONTROL_FD, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == (ssize_t)size ? 0 : -1;
}

static void report(enum LaunchStep step, int error, int exitCode, int fd) {
  const struct LaunchReport message = {LAUNCH_MAGIC, step, error, exitCode};
  (void)sendWithDescriptor(&message, sizeof message, fd); /* a sidecar that is gone needs no report */
}

static _Noreturn void fail(enum LaunchStep step) {
  report(step, errno, 0, -1);
  _exit(126);
}

static _Noreturn void failWith(enum LaunchStep step, int error) {
  errno = error;
  fail(step);
}

/* The pidfd lets the sidecar end and await the whole namespace without ever naming it by a number. */
static void sayReady(void) {
  struct stat workspace;
  if (stat("/workspace", &workspace) != 0) {
    fail(kLaunchStepInit);
  }
  const struct LaunchReady ready = {LAUNCH_MAGIC, 0, workspace.st_dev, workspace.st_ino};
  const int init = (int)syscall(SYS_pidfd_open, 1, 0);
  if (init < 0) {
    fail(kLaunchStepInit);
  }
  if (sendWithDescriptor(&ready, sizeof ready, init) != 0) {
    _exit(126);
  }
  close(init);
}

/* Exits silently when the sidecar is gone. Returns how many bytes of payload came with the packet. */
static size_t receivePacket(int* descriptors) {
  struct iovec part = {received.bytes, sizeof received.bytes};
  union DescriptorControl control;
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
  ssize_t size;
  do {
    size = recvmsg(LAUNCH_CONTROL_FD, &message, MSG_CMSG_CLOEXEC);
  } while (size < 0 && errno == EINTR);
  if (size <= 0) {
    _exit(126);
  }
  if ((size_t)size < sizeof received.packet || received.packet.magic != LAUNCH_MAGIC ||
      (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
    failWith(kLaunchStepProtocol, EPROTO);
  }
  const size_t payload = (size_t)size - sizeof received.packet;
  const size_t wanted = (received.packet.operation == kLaunchRun ? kStreams : 0) + (payload == 0 ? 1 : 0);
  const struct cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (wanted == 0 ? header != NULL
                  : header == NULL || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
                        header->cmsg_len != CMSG_LEN(wanted * sizeof(int))) {
    failWith(kLaunchStepProtocol, EPROTO);
  }
  if (wanted != 0) {
    memcpy(descriptors, CMSG_DATA(header), wanted * sizeof(int));
  }
  return payload;
}

/* The seals keep the pages from vanishing under us. */
static char* mapPayload(int fd, uint64_t size) {
  struct stat status;
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_WRITE)) != (F_SEAL_SHRINK | F_SEAL_WRITE) ||
      fstat(fd, &status) != 0 || status.st_size < 0 || (uint64_t)status.st_size != size || size == 0) {
    failWith(kLaunchStepProtocol, EPROTO);
  }
  char* payload = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_POPULATE, fd, 0);
  if (payload == MAP_FAILED) {
    fail(kLaunchStepProtocol);
  }
  close(fd);
  return payload;
}

/* What lies behind `headerBytes` is strings. `inPacket` bytes came with the packet; when that is none, `fd` has them.
 */
static char* takePayload(size_t inPacket, int fd, size_t headerBytes, struct Strings* strings) {
  const uint64_t size = received.packet.payloadBytes;
  char* payload = inPacket != 0 ? received.bytes + sizeof received.packet : mapPayload(fd, size);
  if ((inPacket != 0 && inPacket != size) || size <= headerBytes) {
    failWith(kLaunchStepProtocol, EPROTO);
  }
  strings->at = payload + headerBytes;
  strings->end = payload + size;
  if (strings->end[-1] != '\0') {
    failWith(kLaunchStepProtocol, EPROTO);
  }
  return payload;
}

static char* takeString(struct Strings* strings) {
  if (strings->at >= strings->end) {
    failWith(kLaunchStepProtocol, EPROTO);
  }
  char* taken = strings->at;
  strings->at += strlen(taken) + 1;
  return taken;
}

static char** takeVector(struct Strings* strings, uint32_t count, char** vector) {
  for (uint32_t i = 0; i < count; ++i) {
    vector[i] = takeString(strings);
  }
  vector[count] = NULL;
  return vector + count + 1;
}

/* By system call, since libc keeps two signals for itself and leaves those as they are. */
static void resetSignals(void) {
  const struct {
    void* handler;
    unsigned long flags;
    void* restorer;
    uint64_t mask;
  } defaultAction = {NULL, 0, NULL, 0};
  for (long number = 1; number <= 64; ++number) {
    syscall(SYS_rt_sigaction, number, &defaultAction, NULL, sizeof(uint64_t));
  }
  const uint64_t none = 0;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof none);
}

/* A launch that was made ready ahead of time was so in the background. What is left of it is a command's: this process,
 * and init, which has to tell of its end. By system call, since musl has none. */
static void leaveBackground(void) {
  const struct sched_param parameters = {0};
  syscall(SYS_sched_setscheduler, 1, SCHED_OTHER, &parameters);
  syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &parameters);
}

/* A ceiling that this process itself was given stays where it is the lower one: what was asked for holds then, too. */
static uint64_t withinHard(int resource, uint64_t value, struct rlimit* limit) {
  if (getrlimit(resource, limit) != 0) {
    fail(kLaunchStepLimits);
  }
  return value < limit->rlim_max ? value : limit->rlim_max;
}

static void setLimit(int resource, const struct rlimit* limit) {
  if (setrlimit(resource, limit) != 0) {
    fail(kLaunchStepLimits);
  }
}

static void applyLimit(int resource, uint64_t value) {
  struct rlimit limit;
  if (value != LAUNCH_KEEP_LIMIT) {
    limit.rlim_cur = limit.rlim_max = withinHard(resource, value, &limit);
    setLimit(resource, &limit);
  }
}

static void applySoftOpenFiles(uint64_t value) {
  struct rlimit limit;
  if (value != LAUNCH_KEEP_LIMIT) {
    limit.rlim_cur = withinHard(RLIMIT_NOFILE, value, &limit);
    setLimit(RLIMIT_NOFILE, &limit);
  }
}

/* bwrap's init asks to die with its parent only after it has forked us. Until then, a dying sidecar would take the
 * outer bwrap and leave the namespace alive, so nothing of a guest may run before, and the sidecar has no word of us
 * until then: a packet comes from one that lives after it. There is no event for it; but the first thing that init
 * sleeps in is the wait for its children, which comes after. Nearly always it is there already. */
static void awaitInit(void) {
  for (;;) {
    char text[256];
    const int fd = open("/proc/1/stat", O_RDONLY | O_CLOEXEC);
    const ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0) {
      close(fd);
    }
    if (size <= 0) {
      fail(kLaunchStepInit);
    }
    text[size] = '\0';
    const char* nameEnd = strrchr(text, ')');
    if (nameEnd == NULL || nameEnd[1] == '\0') {
      failWith(kLaunchStepInit, EPROTO);
    }
    if (nameEnd[2] == 'S') {
      break;
    }
    sched_yield();
  }
}

/* A program that is not there, or may not be run, is a result of its own, as it is for env(1) and sh; the sidecar finds
 * the words for it. Want of memory or processes, and too long a list of arguments, are not: the sidecar answers with an
 * error. */
static _Noreturn void failExec(void) {
  switch (errno) {
    case E2BIG:
    case ENOMEM:
    case EAGAIN:
    case EMFILE:
    case ENFILE:
    case EIO:
      fail(kLaunchStepExec);
  }
  const int exitCode = errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG ? 127 : 126;
  report(kLaunchStepExec, errno, exitCode, -1);
  _exit(exitCode);
}

/* A text without an interpreter line is the shell's, as for execvp in most C libraries. The shell looks the program up
 * in PATH once more. */
static void execByShell(char* program, uint32_t count, char** arguments) {
  char** shell = calloc(count + (size_t)4, sizeof *shell);
  if (shell == NULL) {
    return;
  }
  shell[0] = (char*)"/bin/sh";
  shell[1] = (char*)"-c";
  shell[2] = (char*)"exec \"$0\" \"$@\"";
  shell[3] = program;
  memcpy(shell + 4, arguments + 1, count * sizeof *shell); /* and the NULL at the end */
  execv(shell[0], shell);
  free(shell);
  errno = ENOEXEC; /* what is wrong is the program, not the shell */
}

static _Noreturn void run(size_t inPacket, const int* descriptors) {
  struct LaunchRunHeader header;
  struct Strings strings;
  const char* payload = takePayload(inPacket, descriptors[kStreams], sizeof header, &strings);
  memcpy(&header, payload, sizeof header);
  const uint64_t entries = (uint64_t)header.argumentCount + header.environmentCount + 2;
  if (header.argumentCount == 0 || entries > received.packet.payloadBytes) { /* each string has a byte at least */
    failWith(kLaunchStepProtocol, EPROTO);
  }
  char** arguments =
      entries <= sizeof fewStrings / sizeof *fewStrings ? fewStrings : calloc(entries, sizeof *arguments);
  if (arguments == NULL) {
    fail(kLaunchStepProtocol);
  }
  const char* directory = takeString(&strings);
  char* program = takeString(&strings);
  char** environment = takeVector(&strings, header.argumentCount, arguments);
  takeVector(&strings, header.environmentCount, environment);
  environ = environment;

  if (header.entersGroup != 0 && write(LAUNCH_GROUP_FD, "0", 1) != 1) {
    fail(kLaunchStepLimits);
  }
  for (int stream = 0; stream < kStreams; ++stream) {
    if (dup3(descriptors[stream], stream, 0) < 0) {
      fail(kLaunchStepStreams);
    }
  }
  if (syscall(SYS_close_range, LAUNCH_CONTROL_FD + 1u, ~0u, 0u) != 0) {
    fail(kLaunchStepStreams);
  }
  if (chdir(directory) != 0) {
    fail(kLaunchStepDirectory);
  }
  applyLimit(RLIMIT_FSIZE, header.fileBytes);
  applySoftOpenFiles(header.softOpenFiles);
  applyLimit(RLIMIT_NOFILE, header.openFiles);
  applyLimit(RLIMIT_NPROC, header.processes);
  execvp(program, arguments);
  if (errno == ENOEXEC) {
    execByShell(program, header.argumentCount, arguments);
  }
  failExec();
}

static _Noreturn void fileOperation(size_t inPacket, int payloadFd) {
  struct LaunchPathHeader header;
  struct Strings strings;
  const char* payload = takePayload(inPacket, payloadFd, sizeof header, &strings);
  memcpy(&header, payload, sizeof header);
  char* path = takeString(&strings);
  if (path[0] != '/') {
    failWith(kLaunchStepProtocol, EPROTO);
  }
  int fd = -1;
  const int failed =
      received.packet.operation == kLaunchOpen ? (fd = openInGuest(path, &header)) < 0 : removeInGuest(path) != 0;
  report(kLaunchStepFile, failed ? errno : 0, 0, fd);
  _exit(0);
}

/* It is bwrap's to install. */
static void requireFilter(void) {
  errno = 0;
  if (prctl(LAUNCH_FILTER_QUESTION, 0, 0, 0, 0) != -1 || errno != LAUNCH_FILTER_ANSWER) {
    fail(kLaunchStepFilter);
  }
}

/* Where memory runs out the kernel is to end a guest, not what holds its sandbox, nor anything of the host. A guest may
 * take that back, so that nothing may rely on it. */
static void goBeforeOthers(void) {
  const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd >= 0) {
    (void)!write(fd, "1000", 4);
    close(fd);
  }
}

/* All that is the same for every command, so that none has to wait for it. */
static void prepare(void) {
  umask(022);
  resetSignals();
  awaitInit();
  leaveBackground();
  requireFilter();
  goBeforeOthers();
  memset(received.bytes, 1, sizeof received.bytes);
  memset(fewStrings, 1, sizeof fewStrings);
}

int main(void) {
  int descriptors[kMaxDescriptors] = {-1, -1, -1, -1};
  if (fcntl(LAUNCH_CONTROL_FD, F_SETFD, FD_CLOEXEC) != 0) {
    _exit(126); /* not started by the sidecar */
  }
  prepare();
  sayReady();
  const size_t inPacket = receivePacket(descriptors);
  switch (received.packet.operation) {
    case kLaunchRun:
      run(inPacket, descriptors);
    case kLaunchOpen:
    case kLaunchRemove:
      fileOperation(inPacket, descriptors[0]);
    default:
      failWith(kLaunchStepProtocol, EPROTO);
  }
}
