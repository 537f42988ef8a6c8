#include <signal.h>

#include "tests/support/catch_main.h"

int __wrap_main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);  // as main does; OpenSSL writes without a flag against it
  return __real_main(argc, argv);
}
