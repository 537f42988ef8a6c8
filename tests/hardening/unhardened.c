/* Only to be looked at. */
#include <string.h>

__asm__(".section .both, \"awx\", @progbits\n.long 0\n.text");

int main(int argc, char** argv) {
  char name[9000];
  strcpy(name, argv[0]);
  return name[argc];
}
