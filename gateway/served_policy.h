// A policy with what is needed to serve it.
#pragma once

#include <utility>
#include <vector>

#include "gateway/policy.h"
#include "gateway/redaction.h"

namespace stitchkit {

/// Made once a policy; immutable, shared between threads.
class ServedPolicy {
 public:
  explicit ServedPolicy(NetworkPolicy policy) : policy_(std::move(policy)), redactor_(injectedBy(policy_)) {}

  [[nodiscard]] const NetworkPolicy& policy() const { return policy_; }
  /// Finds what any of the rules injects: origins of one service may show each other's requests.
  [[nodiscard]] const Redactor& redactor() const { return redactor_; }

 private:
  static std::vector<HeaderField> injectedBy(const NetworkPolicy& policy) {
    std::vector<HeaderField> all;
    for (const Rule& rule : policy.rules()) {
      all.insert(all.end(), rule.headers.begin(), rule.headers.end());
    }
    return all;
  }

  NetworkPolicy policy_;
  Redactor redactor_;
};

}  // namespace stitchkit
