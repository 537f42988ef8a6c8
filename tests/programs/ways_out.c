// Tries one way out of a network namespace after the other. Arguments: `NAME=KIND[,ARGUMENT...]`.
//   tcp,ADDRESS,PORT          connects
//   udp,ADDRESS,PORT          sends a datagram and waits for an answer
//   dns,ADDRESS,PORT          asks there for the address of a name and waits for one
//   ping,ADDRESS raw,ADDRESS  ICMP echo by a ping socket, by a raw socket (IPv4)
//   packet packet-dgram       opens a packet socket
//   abstract,TYPE,NAME        connects to an abstract socket; TYPE is stream, dgram or seqpacket
//   path,PATH                 connects to a socket in the file system
//   link-up,INDEX link-add,KIND address-add,ADDRESS route-add,ADDRESS   rtnetlink, about interface INDEX or 1
//   lists-tcp,PORT lists-unix,NAME diag-tcp,PORT   finds somebody else's socket in /proc/net, by sock_diag
//   setns,PATH unshare-net unshare-user            another network namespace
//   family uring-family int80-family socketcall    opens a socket of a family that no guest needs: by socket(), by
//                             io_uring, by the system call of 32-bit programs and by that of older ones
#define _GNU_SOURCE
#include "report.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/inet_diag.h>
#include <linux/io_uring.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kPatience = 3000 };  // milliseconds, for what may never come

union Address {
  struct sockaddr any;
  struct sockaddr_in v4;
  struct sockaddr_in6 v6;
};

static socklen_t parseAddress(const char* text, const char* port, union Address* address) {
  memset(address, 0, sizeof *address);
  const uint16_t number = htons((uint16_t)(port == NULL ? 0 : atoi(port)));
  if (inet_pton(AF_INET, text, &address->v4.sin_addr) == 1) {
    address->v4.sin_family = AF_INET;
    address->v4.sin_port = number;
    return sizeof address->v4;
  }
  inet_pton(AF_INET6, text, &address->v6.sin6_addr);
  address->v6.sin6_family = AF_INET6;
  address->v6.sin6_port = number;
  return sizeof address->v6;
}

static long waitFor(int descriptor, short events) {
  struct pollfd waiter = {descriptor, events, 0};
  const int ready = poll(&waiter, 1, kPatience);
  if (ready == 0) {
    errno = ETIMEDOUT;
  }
  return ready > 0 ? 0 : -1;
}

static long tryTcp(const char* host, const char* port) {
  union Address address;
  const socklen_t size = parseAddress(host, port, &address);
  const int end = socket(address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
  if (connect(end, &address.any, size) == 0) {
    return 0;
  }
  if (errno != EINPROGRESS || waitFor(end, POLLOUT) < 0) {
    return -1;
  }
  socklen_t length = sizeof errno;
  int failure = 0;
  getsockopt(end, SOL_SOCKET, SO_ERROR, &failure, &length);
  errno = failure;
  return failure == 0 ? 0 : -1;
}

// The size of the answer.
static long askByDatagram(const char* host, const char* port, const void* question, size_t bytes, void* answer,
                          size_t room) {
  union Address address;
  const socklen_t size = parseAddress(host, port, &address);
  const int end = socket(address.any.sa_family, SOCK_DGRAM, 0);
  if (connect(end, &address.any, size) < 0 || send(end, question, bytes, 0) < 0 || waitFor(end, POLLIN) < 0) {
    return -1;
  }
  return recv(end, answer, room, 0);
}

static long tryUdp(const char* host, const char* port) {
  char answer[16];
  return askByDatagram(host, port, "anybody?", 8, answer, sizeof answer);
}

static long tryDns(const char* host, const char* port) {
  static const unsigned char kQuestion[] =
      "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x05"
      "asked\x09"
      "stitchkit\x04"
      "test\x00\x00\x01\x00\x01";
  unsigned char answer[512];
  const long size = askByDatagram(host, port, kQuestion, sizeof kQuestion - 1, answer, sizeof answer);
  if (size < 0) {
    return -1;
  }
  errno = EBADMSG;
  return size >= 12 && answer[0] == 0x12 && answer[1] == 0x34 && (answer[2] & 0x80) != 0 && answer[7] == 1 ? 0 : -1;
}

static uint16_t checksum(const void* bytes, size_t size) {
  uint32_t sum = 0;
  for (size_t i = 0; i + 1 < size; i += 2) {
    uint16_t word;
    memcpy(&word, (const char*)bytes + i, sizeof word);
    sum += word;
  }
  sum = (sum >> 16) + (sum & 0xffff);
  return (uint16_t) ~(sum + (sum >> 16));
}

static long tryEcho(int type, const char* host) {
  union Address address;
  const socklen_t size = parseAddress(host, NULL, &address);
  const int end = socket(AF_INET, type, IPPROTO_ICMP);
  struct icmphdr request = {.type = ICMP_ECHO, .un.echo = {.id = htons(7), .sequence = htons(1)}};
  request.checksum = checksum(&request, sizeof request);
  if (end < 0 || sendto(end, &request, sizeof request, 0, &address.any, size) < 0) {
    return -1;
  }
  char answer[256];
  // A raw socket sees the request as well, where it arrives.
  for (;;) {
    if (waitFor(end, POLLIN) < 0) {
      return -1;
    }
    const ssize_t got = recv(end, answer, sizeof answer, 0);
    const size_t header = type == SOCK_RAW ? (size_t)(answer[0] & 15) * 4 : 0;
    if (got > (ssize_t)header && answer[header] == ICMP_ECHOREPLY) {
      return 0;
    }
  }
}

static long tryUnix(const char* kind, const char* name, int isAbstract) {
  const int type = strcmp(kind, "dgram") == 0       ? SOCK_DGRAM
                   : strcmp(kind, "seqpacket") == 0 ? SOCK_SEQPACKET
                                                    : SOCK_STREAM;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const size_t size = strlen(name);
  if (size + 1 >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  memcpy(address.sun_path + isAbstract, name, size);
  return connect(socket(AF_UNIX, type, 0), (struct sockaddr*)&address,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size + 1));
}

struct Request {
  struct nlmsghdr header;
  char body[256];
};

static void put(struct Request* request, const void* bytes, size_t size) {
  memcpy((char*)request + NLMSG_ALIGN(request->header.nlmsg_len), bytes, size);
  request->header.nlmsg_len = (uint32_t)(NLMSG_ALIGN(request->header.nlmsg_len) + size);
}

static struct Request newRequest(int type, int flags, const void* body, size_t size) {
  struct Request request = {.header = {.nlmsg_len = NLMSG_HDRLEN, .nlmsg_type = (uint16_t)type}};
  request.header.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags);
  put(&request, body, size);
  return request;
}

static void putAttribute(struct Request* request, int type, const void* value, size_t size) {
  const struct rtattr attribute = {.rta_len = (uint16_t)RTA_LENGTH(size), .rta_type = (uint16_t)type};
  put(request, &attribute, sizeof attribute);
  put(request, value, size);
}

static long sendRequest(const struct Request* request) {
  const int end = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  if (end < 0 || send(end, request, request->header.nlmsg_len, 0) < 0) {
    return -1;
  }
  struct {
    struct nlmsghdr header;
    struct nlmsgerr error;
    char rest[1024];
  } answer;
  if (recv(end, &answer, sizeof answer, 0) < 0) {
    return -1;
  }
  errno = -answer.error.error;
  return answer.error.error == 0 ? 0 : -1;
}

static long tryLinkUp(const char* index) {
  const struct ifinfomsg info = {.ifi_index = atoi(index), .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
  const struct Request request = newRequest(RTM_NEWLINK, 0, &info, sizeof info);
  return sendRequest(&request);
}

static long tryLinkAdd(const char* kind) {
  const struct ifinfomsg info = {0};
  struct Request request = newRequest(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &info, sizeof info);
  char nested[64];
  const struct rtattr inner = {.rta_len = (uint16_t)RTA_LENGTH(strlen(kind)), .rta_type = IFLA_INFO_KIND};
  memcpy(nested, &inner, sizeof inner);
  memcpy(nested + RTA_LENGTH(0), kind, strlen(kind));
  putAttribute(&request, IFLA_LINKINFO, nested, RTA_LENGTH(strlen(kind)));
  return sendRequest(&request);
}

static long tryAddressAdd(const char* text) {
  union Address address;
  parseAddress(text, NULL, &address);
  const struct ifaddrmsg info = {.ifa_family = AF_INET, .ifa_prefixlen = 24, .ifa_index = 1};
  struct Request request = newRequest(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &info, sizeof info);
  putAttribute(&request, IFA_LOCAL, &address.v4.sin_addr, 4);
  return sendRequest(&request);
}

static long tryRouteAdd(const char* text) {
  union Address address;
  parseAddress(text, NULL, &address);
  const struct rtmsg info = {.rtm_family = AF_INET,
                             .rtm_dst_len = 32,
                             .rtm_table = RT_TABLE_MAIN,
                             .rtm_protocol = RTPROT_STATIC,
                             .rtm_scope = RT_SCOPE_LINK,
                             .rtm_type = RTN_UNICAST};
  struct Request request = newRequest(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, &info, sizeof info);
  const int loopback = 1;
  putAttribute(&request, RTA_DST, &address.v4.sin_addr, 4);
  putAttribute(&request, RTA_OIF, &loopback, sizeof loopback);
  return sendRequest(&request);
}

static long findInFile(const char* path, const char* text) {
  FILE* file = fopen(path, "r");
  if (file == NULL) {
    return -1;
  }
  char line[1024];
  while (fgets(line, sizeof line, file) != NULL) {
    if (strstr(line, text) != NULL) {
      return 0;
    }
  }
  errno = ESRCH;
  return -1;
}

static long tryListsTcp(const char* port) {
  char text[16];
  snprintf(text, sizeof text, ":%04X ", (unsigned)atoi(port));
  return findInFile("/proc/net/tcp", text);
}

static long tryDiagTcp(const char* port) {
  const struct inet_diag_req_v2 query = {.sdiag_family = AF_INET, .sdiag_protocol = IPPROTO_TCP, .idiag_states = ~0U};
  struct Request request = newRequest(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &query, sizeof query);
  const int end = socket(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG);
  if (end < 0 || send(end, &request, request.header.nlmsg_len, 0) < 0) {
    return -1;
  }
  static char answer[65536];
  for (;;) {
    const ssize_t size = recv(end, answer, sizeof answer, 0);
    size_t left = size > 0 ? (size_t)size : 0;
    for (struct nlmsghdr* header = (struct nlmsghdr*)answer; NLMSG_OK(header, left);
         header = NLMSG_NEXT(header, left)) {
      if (header->nlmsg_type == NLMSG_ERROR || header->nlmsg_type == NLMSG_DONE) {
        errno = ESRCH;
        return -1;
      }
      const struct inet_diag_msg* found = NLMSG_DATA(header);
      if (found->id.idiag_sport == htons((uint16_t)atoi(port))) {
        return 0;
      }
    }
    if (size <= 0) {
      return -1;
    }
  }
}

static long trySetns(const char* path) {
  const int space = open(path, O_RDONLY);
  return space < 0 ? -1 : setns(space, CLONE_NEWNET);
}

static long byUring(int family, int type) {
  struct io_uring_params parameters = {0};
  const int ring = (int)syscall(SYS_io_uring_setup, 2, &parameters);
  if (ring < 0) {
    return -1;
  }
  const size_t size = parameters.cq_off.cqes + parameters.cq_entries * sizeof(struct io_uring_cqe) + 4096;
  char* queues = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQ_RING);
  struct io_uring_sqe* entries = mmap(NULL, parameters.sq_entries * sizeof *entries, PROT_READ | PROT_WRITE,
                                      MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQES);
  if (queues == MAP_FAILED || entries == MAP_FAILED) {
    return -1;
  }
  entries[0] = (struct io_uring_sqe){.opcode = IORING_OP_SOCKET, .fd = family, .off = (uint64_t)type};
  ((uint32_t*)(queues + parameters.sq_off.array))[0] = 0;
  __atomic_store_n((uint32_t*)(queues + parameters.sq_off.tail), 1, __ATOMIC_RELEASE);
  if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0) {
    return -1;
  }
  const struct io_uring_cqe* done = (const struct io_uring_cqe*)(queues + parameters.cq_off.cqes);
  errno = done->res < 0 ? -done->res : 0;
  return done->res;
}

static long int80(long number, long one, long two) {
#ifdef __x86_64__
  long outcome = number;
  __asm__ volatile("int $0x80" : "+a"(outcome) : "b"(one), "c"(two), "d"(0L) : "memory", "r8", "r9", "r10", "r11");
  errno = outcome < 0 ? (int)-outcome : 0;
  return outcome;
#else
  (void)number, (void)one, (void)two;
  errno = ENOSYS;
  return -1;
#endif
}

static long byInt80(int family, int type) {
  enum { kSocketOfI386 = 359 };
  return int80(kSocketOfI386, family, type);
}

// Its arguments are in memory, which no filter can read, and where a pointer of 32 bits reaches.
static long bySocketcall(int family, int type) {
#ifdef MAP_32BIT
  enum { kSocketcallOfI386 = 102, kSocketOfSocketcall = 1 };
  const size_t size = 3 * sizeof(uint32_t);
  uint32_t* arguments = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  if (arguments == MAP_FAILED) {
    return -1;
  }
  arguments[0] = (uint32_t)family;
  arguments[1] = (uint32_t)type;
  const long outcome = int80(kSocketcallOfI386, kSocketOfSocketcall, (long)arguments);
  munmap(arguments, size);
  return outcome;
#else
  return int80(0, family, type);  // not there
#endif
}

static long bySystemCall(int family, int type) {
  return socket(family, type, 0);
}

// Any of a family beyond the four that programs use. What cannot be had at all tells the first failure.
static long tryFamilies(long (*open)(int, int)) {
  static const int kTypes[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET};
  int first = 0;
  for (int family = AF_UNIX; family < AF_MAX + 8; ++family) {
    for (size_t i = 0; i < sizeof kTypes / sizeof *kTypes; ++i) {
      if (family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK) {
        continue;
      }
      const long end = open(family, kTypes[i]);
      if (end >= 0) {
        fprintf(stderr, "family %d, type %d\n", family, kTypes[i]);
        close((int)end);
        return 0;
      }
      first = first == 0 ? errno : first;
    }
  }
  errno = first;
  return -1;
}

static long attempt(const char* kind, const char* one, const char* two) {
#define IS(name) (strcmp(kind, name) == 0)
  return IS("tcp")            ? tryTcp(one, two)
         : IS("udp")          ? tryUdp(one, two)
         : IS("dns")          ? tryDns(one, two)
         : IS("ping")         ? tryEcho(SOCK_DGRAM, one)
         : IS("raw")          ? tryEcho(SOCK_RAW, one)
         : IS("packet")       ? socket(AF_PACKET, SOCK_RAW, htons(3))
         : IS("packet-dgram") ? socket(AF_PACKET, SOCK_DGRAM, htons(3))
         : IS("abstract")     ? tryUnix(one, two, 1)
         : IS("path")         ? tryUnix("stream", one, 0)
         : IS("link-up")      ? tryLinkUp(one)
         : IS("link-add")     ? tryLinkAdd(one)
         : IS("address-add")  ? tryAddressAdd(one)
         : IS("route-add")    ? tryRouteAdd(one)
         : IS("lists-tcp")    ? tryListsTcp(one)
         : IS("lists-unix")   ? findInFile("/proc/net/unix", one)
         : IS("diag-tcp")     ? tryDiagTcp(one)
         : IS("setns")        ? trySetns(one)
         : IS("unshare-net")  ? unshare(CLONE_NEWNET)
         : IS("unshare-user") ? unshare(CLONE_NEWUSER | CLONE_NEWNET)
         : IS("family")       ? tryFamilies(bySystemCall)
         : IS("uring-family") ? tryFamilies(byUring)
         : IS("int80-family") ? tryFamilies(byInt80)
         : IS("socketcall")   ? tryFamilies(bySocketcall)
                              : (errno = EINVAL, -1);
#undef IS
}

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    char* rest = argv[i];
    const char* name = strsep(&rest, "=");
    const char* kind = strsep(&rest, ",");
    const char* one = strsep(&rest, ",");
    // Each in a process of its own: some change the namespaces of whoever tries.
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      report(name, attempt(kind, one == NULL ? "" : one, rest == NULL ? "" : rest));
      _exit(0);
    }
    waitpid(child, NULL, 0);
  }
  return 0;
}
