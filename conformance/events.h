// Named things that happen once in a case, for threads that poll.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "conformance/process.h"

namespace conformance {

/// A descriptor that is readable for ever once it was raised. Thread-safe.
class Event {
 public:
  Event();
  void raise() const;
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }

 private:
  Descriptor descriptor_;
};

/// Thread-safe.
class Events {
 public:
  /// Lives as long as this object.
  const Event& named(const std::string& name);

 private:
  std::mutex mutex_;
  std::map<std::string, Event> events_;
};

}  // namespace conformance
