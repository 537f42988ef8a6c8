// Keeps a key in the kernel, looks for it and reads it. It lies in the process's own keyring, and goes with that.
#include "report.h"

#include <sys/syscall.h>
#include <unistd.h>

enum { kProcessKeyring = -2, kGetKeyringId = 0, kRead = 11 };

int main(void) {
  static const char kText[] = "left";
  char text[sizeof kText];
  const long key = syscall(SYS_add_key, "user", "stitchkit-test", kText, sizeof kText, kProcessKeyring);
  report("add", key);
  report("request", syscall(SYS_request_key, "user", "stitchkit-test", NULL, kProcessKeyring));
  report("keyring", syscall(SYS_keyctl, kGetKeyringId, kProcessKeyring, 0));
  report("read", syscall(SYS_keyctl, kRead, key, text, sizeof text));
  return 0;
}
