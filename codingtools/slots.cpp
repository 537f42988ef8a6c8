#include "codingtools/slots.h"

namespace stitchkit {

Slots::Held Slots::take(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  if (!freed_.wait(lock, stop, [this] { return free_ > 0; })) {
    return Held(nullptr);
  }
  --free_;
  return Held(this);
}

Slots::Held::~Held() {
  if (slots_ != nullptr) {
    {
      const std::lock_guard lock(slots_->mutex_);
      ++slots_->free_;
    }
    slots_->freed_.notify_one();
  }
}

}  // namespace stitchkit
