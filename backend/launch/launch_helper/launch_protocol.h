/* What the sidecar and its helper inside the sandbox say to each other, in C and C++.
 *
 * Both are parts of one binary, so there is no version and no byte order to agree on. The socket is SOCK_SEQPACKET:
 * 1. helper -> sidecar: LaunchReady and one descriptor, a pidfd of the PID namespace's init. It means: set-up is
 *    done, the sandbox dies with the sidecar, nothing of a guest runs yet.
 * 2. sidecar -> helper: LaunchPacket, the payload behind it, and for kLaunchRun stdin, stdout and stderr. The payload
 * is a header, then strings that each end in NUL. One that is too large for the message comes as one more descriptor,
 *    the last, instead: a sealed memory file.
 * 3. helper -> sidecar: at most one LaunchReport. For kLaunchRun the end of the socket without one means that the
 *    program runs (the helper's end closes itself at exec).
 * When the sidecar is gone before 2, the helper exits and nothing has run. */
#ifndef BACKEND_LAUNCH_LAUNCH_HELPER_LAUNCH_PROTOCOL_H
#define BACKEND_LAUNCH_LAUNCH_HELPER_LAUNCH_PROTOCOL_H

#include <errno.h>
#include <stdint.h>

/* The helper's end of the socket; bwrap passes it on. */
#define LAUNCH_CONTROL_FD 3
/* Where the session has control groups: what the guest's program enters its own by (LaunchRunHeader::entersGroup). */
#define LAUNCH_GROUP_FD 6
#define LAUNCH_MAGIC 0x6c6b7473u
/* The filter of system calls answers this option of prctl, which the kernel does not have, with this errno, which prctl
 * does not give: so the helper knows that the filter is on. A guest may know as well. */
#define LAUNCH_FILTER_QUESTION 0x6c667473
#define LAUNCH_FILTER_ANSWER ENOANO
/* The most that a packet and the payload behind it may be. */
#define LAUNCH_PACKET_BYTES 4096
/* A limit that stays as it is. */
#define LAUNCH_KEEP_LIMIT UINT64_MAX

enum LaunchOperation { kLaunchRun = 1, kLaunchOpen = 2, kLaunchRemove = 3 };

enum LaunchStep {
  kLaunchStepInit = 1, /* no handle on the namespace's init, or no workspace */
  kLaunchStepProtocol, /* the packet or its payload is malformed */
  kLaunchStepStreams,
  kLaunchStepDirectory,
  kLaunchStepLimits,
  kLaunchStepFilter, /* the filter of system calls is not on */
  kLaunchStepExec,
  kLaunchStepFile /* the end of kLaunchOpen and kLaunchRemove, good (error 0, with the descriptor) or bad */
};

struct LaunchReady {
  uint32_t magic;
  uint32_t reserved;
  /* st_dev and st_ino of what is mounted on /workspace: bwrap takes a path, and paths can be replaced. */
  uint64_t workspaceDevice;
  uint64_t workspaceInode;
};

struct LaunchPacket {
  uint32_t magic;
  uint32_t operation;
  uint64_t payloadBytes;
};

/* Strings: working directory, program, arguments (the first is argv[0]), environment ("NAME=value"). */
struct LaunchRunHeader {
  uint32_t argumentCount;
  uint32_t environmentCount;
  uint32_t entersGroup; /* 1: "0" is written into LAUNCH_GROUP_FD */
  uint32_t reserved;
  uint64_t fileBytes; /* RLIMIT_FSIZE */
  uint64_t openFiles; /* RLIMIT_NOFILE */
  /* RLIMIT_NOFILE's soft limit, at most the hard one, which stays; before openFiles. */
  uint64_t softOpenFiles;
  uint64_t processes; /* RLIMIT_NPROC: those of the sandbox, init included */
};

/* Strings: an absolute path in the guest's view. The first three members belong to kLaunchOpen. */
struct LaunchPathHeader {
  uint32_t flags;
  uint32_t mode;
  uint32_t createParents;
  uint32_t reserved;
};

struct LaunchReport {
  uint32_t magic;
  uint32_t step;
  int32_t error; /* errno */
  /* Not 0: an ordinary result, which the guest's stderr explains, and the status that the helper exits with. */
  int32_t exitCode;
};

#endif
