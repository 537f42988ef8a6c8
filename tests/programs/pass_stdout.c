// Carries the write end of one command's stdout into another command, over a Unix socket in the workspace.
//   receive PATH SECONDS MARKER: listens at PATH, says `listening`, takes a descriptor and holds it for SECONDS
//   send PATH: connects, passes its own stdout, says `passed`
#define _GNU_SOURCE
#include "report.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

union Control {
  struct cmsghdr header;
  char bytes[CMSG_SPACE(sizeof(int))];
};

static int giveUp(const char* what) {
  report(what, -1);
  return 1;
}

static int receiveOne(const struct sockaddr_un* address, unsigned seconds) {
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  if (bind(listener, (const struct sockaddr*)address, sizeof *address) < 0 || listen(listener, 1) < 0) {
    return giveUp("bind");
  }
  printf("listening\n");
  fflush(stdout);
  const int peer = accept(listener, NULL, NULL);
  char byte = 0;
  struct iovec data = {&byte, 1};
  union Control control;
  struct msghdr message = {
      .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  if (recvmsg(peer, &message, 0) != 1 || message.msg_controllen == 0) {
    return giveUp("recvmsg");
  }
  printf("holding\n");
  fflush(stdout);
  if (write(peer, "k", 1) != 1) {
    return giveUp("acknowledge");
  }
  sleep(seconds);
  return 0;
}

static int sendOne(const struct sockaddr_un* address) {
  const int peer = socket(AF_UNIX, SOCK_STREAM, 0);
  if (connect(peer, (const struct sockaddr*)address, sizeof *address) < 0) {
    return giveUp("connect");
  }
  char byte = 's';
  struct iovec data = {&byte, 1};
  union Control control = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
  const int passed = STDOUT_FILENO;
  memcpy(CMSG_DATA(&control.header), &passed, sizeof passed);
  struct msghdr message = {
      .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  if (sendmsg(peer, &message, 0) != 1 || read(peer, &byte, 1) != 1) {
    return giveUp("sendmsg");
  }
  printf("passed\n");
  fflush(stdout);
  return 0;
}

int main(int argc, char** argv) {
  if (argc < 3) {
    return 2;
  }
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s", argv[2]);
  return strcmp(argv[1], "receive") == 0 ? receiveOne(&address, argc > 3 ? (unsigned)atoi(argv[3]) : 60)
                                         : sendOne(&address);
}
