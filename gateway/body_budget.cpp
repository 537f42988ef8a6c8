#include "gateway/body_budget.h"

#include <algorithm>
#include <utility>

namespace stitchkit {

bool BodyBudget::take(const void* owner, std::uint64_t bytes, std::function<void()> granted) {
  if (waiting_.empty() && fits(bytes)) {
    held_ += bytes;
    return true;
  }
  waiting_.push_back({owner, bytes, std::move(granted)});
  return false;
}

void BodyBudget::giveBack(const void* owner, std::uint64_t bytes) {
  std::erase_if(waiting_, [owner](const Waiter& waiter) { return waiter.owner == owner; });
  held_ -= bytes;
  while (!waiting_.empty() && fits(waiting_.front().bytes)) {
    Waiter next = std::move(waiting_.front());
    waiting_.pop_front();
    held_ += next.bytes;
    next.granted();
  }
}

}  // namespace stitchkit
