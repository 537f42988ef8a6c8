# One interface target carries the compiler's settings, so that the static launch helper can do without them.
add_library(sandbox_options INTERFACE)
target_include_directories(sandbox_options INTERFACE ${CMAKE_SOURCE_DIR})
# -pthread: RE2 brings it along, and precompiled headers serve only those that have the same options.
# GCC 12 takes the unused members of a std::variant for uninitialized ones.
target_compile_options(sandbox_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Wold-style-cast
  -Wno-maybe-uninitialized -Werror=return-type
  -fvisibility=hidden -pthread)
# In a unity build no source is the compiler's main file, and every class of one looks like a header's.
if(CMAKE_UNITY_BUILD)
  target_compile_options(sandbox_options INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endif()
target_compile_definitions(sandbox_options INTERFACE _FILE_OFFSET_BITS=64
  BOOST_ASIO_NO_DEPRECATED BOOST_PROCESS_V2_SEPARATE_COMPILATION)
if(SANDBOX_SANITIZE)
  target_compile_options(sandbox_options INTERFACE -fsanitize=${SANDBOX_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  target_link_options(sandbox_options INTERFACE -fsanitize=${SANDBOX_SANITIZE})
endif()
