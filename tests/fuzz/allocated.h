// How much memory is in use, by the sanitizer's own count.
#pragma once

#include <sanitizer/allocator_interface.h>

#include <cstddef>

namespace stitchkit::fuzz {

inline std::size_t allocatedBytes() {
  return ::__sanitizer_get_current_allocated_bytes();
}

}  // namespace stitchkit::fuzz
