#include "conformance/events.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace conformance {

Event::Event() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void Event::raise() const {
  const std::uint64_t one = 1;
  (void)!::write(descriptor_.get(), &one, sizeof one);
}

const Event& Events::named(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  return events_[name];
}

}  // namespace conformance
