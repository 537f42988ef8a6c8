// One line for each try.
#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <stdio.h>
#include <string.h>

// `outcome` as a system call gives it: below 0 means that errno holds.
static inline void report(const char* name, long outcome) {
  const int failure = errno;
  printf("%s=%s\n", name, outcome >= 0 ? "ok" : strerrorname_np(failure));
  fflush(stdout);
}
