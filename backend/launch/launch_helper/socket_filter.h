/* The seccomp filter of guests whose network is denied. A network namespace holds some families of sockets only: by
 * AF_VSOCK a virtual machine speaks to the one that runs it, whatever its namespace. What the filter lets through is
 * AF_UNIX, AF_INET, AF_INET6 and AF_NETLINK, by the native and the 32-bit interface. What no filter can look into,
 * because it is in memory (socketcall, io_uring), is not there at all. Nor are kernel keys (add_key, request_key,
 * keyctl), which belong to the host's user whatever the namespace: by them guests of all sessions could reach each
 * other.
 *
 * One program serves all architectures that it knows; a call of another one kills the process. */
#ifndef BACKEND_LAUNCH_LAUNCH_HELPER_SOCKET_FILTER_H
#define BACKEND_LAUNCH_LAUNCH_HELPER_SOCKET_FILTER_H

#include <linux/filter.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

extern const struct sock_filter kSocketFilter[];
extern const size_t kSocketFilterLength;

/* For this thread and all that comes of it, for ever. 0, or -1 with errno. */
int installSocketFilter(void);

#ifdef __cplusplus
}
#endif

#endif
