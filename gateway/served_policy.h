// A policy with what is needed to serve it.
#pragma once

#include <map>
#include <utility>

#include "gateway/policy.h"
#include "gateway/redaction.h"

namespace stitchkit {

/// Made once a policy; immutable, shared between threads.
class ServedPolicy {
 public:
  explicit ServedPolicy(NetworkPolicy policy) : policy_(std::move(policy)) {
    for (const Rule& rule : policy_.rules()) {
      redactors_.emplace(&rule, Redactor(rule.headers));
    }
  }

  [[nodiscard]] const NetworkPolicy& policy() const { return policy_; }
  /// @param rule one of the policy's.
  [[nodiscard]] const Redactor& redactorFor(const Rule& rule) const { return redactors_.at(&rule); }

 private:
  NetworkPolicy policy_;
  std::map<const Rule*, Redactor> redactors_;
};

}  // namespace stitchkit
