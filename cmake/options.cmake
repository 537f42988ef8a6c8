# One interface target carries the compiler's settings, so that the static launch helper can do without them.
add_library(sandbox_options INTERFACE)
target_include_directories(sandbox_options INTERFACE ${CMAKE_SOURCE_DIR})
# GCC 12 takes the unused members of a std::variant for uninitialized ones.
target_compile_options(sandbox_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Wold-style-cast
  -Wno-maybe-uninitialized -Werror=return-type
  -fstack-protector-strong -fvisibility=hidden)
target_compile_definitions(sandbox_options INTERFACE _FILE_OFFSET_BITS=64
  BOOST_ASIO_NO_DEPRECATED BOOST_PROCESS_V2_SEPARATE_COMPILATION)
target_link_options(sandbox_options INTERFACE -Wl,-z,relro,-z,now)
if(SANDBOX_SANITIZE)
  target_compile_options(sandbox_options INTERFACE -fsanitize=${SANDBOX_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  target_link_options(sandbox_options INTERFACE -fsanitize=${SANDBOX_SANITIZE})
endif()
