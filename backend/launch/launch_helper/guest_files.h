/* File operations in the guest's view, for session files whose path leads through symbolic links. */
#ifndef BACKEND_LAUNCH_LAUNCH_HELPER_GUEST_FILES_H
#define BACKEND_LAUNCH_LAUNCH_HELPER_GUEST_FILES_H

#include "launch_protocol.h"

/* Opens `path` as a guest would, but never waits (O_NONBLOCK) and never takes a terminal. `path` is absolute and is
 * changed while it works. Returns a descriptor, or -1 and errno. */
int openInGuest(char* path, const struct LaunchPathHeader* request);

/* What `rm -rf path` does: links in the middle are followed, the last one and all below are not; a missing path is no
 * error. Stops at the first failure. Returns 0, or -1 and errno. */
int removeInGuest(const char* path);

#endif
