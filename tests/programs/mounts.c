// Tries to change what is mounted: to uncover, to make writable, to mount over, by the old interface and the new.
#define _GNU_SOURCE
#include "report.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

// <sys/mount.h> and <linux/mount.h> do not go together in glibc 2.36.
int mount(const char*, const char*, const char*, unsigned long, const void*);
int umount2(const char*, int);
#define DETACH 2

int main(void) {
  report("mount-tmpfs", mount("none", "/tmp", "tmpfs", 0, NULL));
  report("mount-proc", mount("none", "/tmp", "proc", 0, NULL));
  report("bind", mount("/usr", "/tmp", NULL, MS_BIND, NULL));
  report("remount-root", mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL));
  report("remount-usr", mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND, NULL));
  report("remount-etc", mount(NULL, "/etc", NULL, MS_REMOUNT | MS_BIND, NULL));
  report("umount-proc", umount2("/proc", DETACH));
  report("umount-usr", umount2("/usr", DETACH));
  report("umount-workspace", umount2("/workspace", DETACH));
  report("unshare-mount", unshare(CLONE_NEWNS));
  report("fsopen", syscall(SYS_fsopen, "tmpfs", 0));
  report("open-tree", syscall(SYS_open_tree, AT_FDCWD, "/usr", OPEN_TREE_CLONE));
  struct mount_attr writable = {.attr_clr = MOUNT_ATTR_RDONLY};
  report("mount-setattr", syscall(SYS_mount_setattr, AT_FDCWD, "/usr", 0, &writable, sizeof writable));
  report("pivot-root", syscall(SYS_pivot_root, "/tmp", "/tmp"));
  report("chroot", chroot("/"));
  return 0;
}
