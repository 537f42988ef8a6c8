// Tries to reach what listens on the host, and what only a privileged process may open.
// Arguments, each one try: `abstract:NAME`, `path:PATH`, `tcp:PORT` (127.0.0.1), `udp:PORT`, `packet`, `raw`,
// `netlink-up` (set the loopback interface up: needs rights in the network namespace).
#define _GNU_SOURCE
#include "report.h"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static long connectUnix(const char* name, int isAbstract) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const size_t size = strlen(name);
  if (size + 1 >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  memcpy(address.sun_path + isAbstract, name, size);
  const int end = socket(AF_UNIX, SOCK_STREAM, 0);
  return connect(end, (struct sockaddr*)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size + 1));
}

static long connectInet(int type, int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int end = socket(AF_INET, type, 0);
  if (connect(end, (struct sockaddr*)&address, sizeof address) < 0) {
    return -1;
  }
  // A datagram's fate shows on the second.
  return type == SOCK_DGRAM && (send(end, "x", 1, 0) < 0 || (usleep(20000), send(end, "x", 1, 0)) < 0) ? -1 : 0;
}

static long setLoopbackUp(void) {
  struct {
    struct nlmsghdr header;
    struct ifinfomsg info;
  } request = {
      .header = {.nlmsg_len = sizeof request, .nlmsg_type = RTM_NEWLINK, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
      .info = {.ifi_index = 1, .ifi_flags = IFF_UP, .ifi_change = IFF_UP}};
  const int end = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  if (end < 0 || send(end, &request, sizeof request, 0) < 0) {
    return -1;
  }
  struct {
    struct nlmsghdr header;
    struct nlmsgerr error;
  } answer;
  if (recv(end, &answer, sizeof answer, 0) < 0) {
    return -1;
  }
  errno = -answer.error.error;
  return answer.error.error == 0 ? 0 : -1;
}

static long attempt(const char* what) {
  const char* colon = strchr(what, ':');
  const char* argument = colon == NULL ? "" : colon + 1;
  if (strncmp(what, "abstract:", 9) == 0) {
    return connectUnix(argument, 1);
  }
  if (strncmp(what, "path:", 5) == 0) {
    return connectUnix(argument, 0);
  }
  if (strncmp(what, "tcp:", 4) == 0) {
    return connectInet(SOCK_STREAM, atoi(argument));
  }
  if (strncmp(what, "udp:", 4) == 0) {
    return connectInet(SOCK_DGRAM, atoi(argument));
  }
  if (strcmp(what, "packet") == 0) {
    return socket(AF_PACKET, SOCK_RAW, htons(3));
  }
  if (strcmp(what, "raw") == 0) {
    return socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
  }
  if (strcmp(what, "netlink-up") == 0) {
    return setLoopbackUp();
  }
  errno = EINVAL;
  return -1;
}

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    char name[32];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(argv[i], ":"), argv[i]);
    report(name, attempt(argv[i]));
  }
  return 0;
}
