#include "rpc/heap_trimmer.h"

#include <malloc.h>

#include <chrono>
#include <cstddef>
#include <utility>

namespace stitchkit {
namespace {

constexpr std::chrono::seconds kQuiet{1};
constexpr std::size_t kWorthIt = 4UL * 1024 * 1024;

}  // namespace

void HeapTrimmer::used() {
  used_ = true;
  if (!std::exchange(awaiting_, true)) {
    await();
  }
}

void HeapTrimmer::await() {
  used_ = false;
  timer_.expires_after(kQuiet);
  timer_.async_wait([this](boost::system::error_code error) {
    if (error) {
      return;
    }
    if (used_) {
      await();
      return;
    }
    awaiting_ = false;
    if (::mallinfo2().fordblks > kWorthIt) {
      ::malloc_trim(0);
    }
  });
}

}  // namespace stitchkit
