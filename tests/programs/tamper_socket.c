// What can be done to somebody else's socket at PATH, beside using it. Argument: PATH; ends with it replaced by
// another, where nothing prevents that. Says also what the name of the peer is to whoever connects: `peer-name:PATH`.
#define _GNU_SOURCE
#include "report.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

static struct sockaddr_un address = {.sun_family = AF_UNIX};

static void showPeer(void) {
  const int end = socket(AF_UNIX, SOCK_STREAM, 0);
  report("connect", connect(end, (struct sockaddr*)&address, sizeof address));
  struct sockaddr_un peer = {0};
  socklen_t size = sizeof peer;
  getpeername(end, (struct sockaddr*)&peer, &size);
  printf("peer-name:%.100s\n", peer.sun_path);
  close(end);
}

int main(int argc, char** argv) {
  const char* path = argc > 1 ? argv[1] : "";
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  char beside[256];
  snprintf(beside, sizeof beside, "%s.beside", path);
  const struct timespec times[2] = {{1, 0}, {1, 0}};
  showPeer();
  report("chmod", chmod(path, 0777));
  report("chown", chown(path, getuid(), getgid()));
  report("utimens", utimensat(AT_FDCWD, path, times, 0));
  report("link", link(path, beside));
  unlink(beside);
  report("rename-away", rename(path, beside));
  rename(beside, path);
  report("symlink-beside", symlink("/workspace/other.sock", beside));
  report("rename-over", rename(beside, path));
  report("unlink", unlink(path));
  report("bind", bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr*)&address, sizeof address));
  report("mount-over", mount("/tmp", path, NULL, MS_BIND, NULL));
  report("unmount", umount2(path, MNT_DETACH));
  return 0;
}
