# Debian's hardening flags (dpkg-buildflags with hardening=+all), and those that a later Debian adds to them.
include(CheckCXXCompilerFlag)

# For every source of ours, the static launch helper too. Each is said aloud, since not every compiler makes
# position-independent programs by itself; of the libraries as well, since they end up in programs only.
set(sandbox_hardening -fPIE -fstack-protector-strong -Wformat -Werror=format-security)
# A frame over a page touches each page on its way; jumps and returns are marked for a processor that checks them.
foreach(flag -fstack-clash-protection -fcf-protection -mbranch-protection=standard)
  string(MAKE_C_IDENTIFIER "SANDBOX_HAS${flag}" has)
  check_cxx_compiler_flag(${flag} ${has})
  if(${has})
    list(APPEND sandbox_hardening ${flag})
  endif()
endforeach()
target_compile_options(sandbox_options INTERFACE ${sandbox_hardening})
target_link_options(sandbox_options INTERFACE -pie -Wl,-z,relro,-z,now,-z,noexecstack)

# The C library's checked functions. They need the optimiser, and a sanitizer knows the unchecked ones only. For the
# directory and not in sandbox_options: the tests take it back, since they are not optimised.
if(NOT SANDBOX_SANITIZE)
  add_compile_options("$<$<CONFIG:Release>:SHELL:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3>")
endif()
