// Policies of one rule, as tests want them.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>

#include "gateway/policy.h"
#include "rpc/base/limits.h"

namespace stitchkit::testing {

/// Throws what is wrong with it.
inline NetworkPolicy policyOf(const std::vector<RuleInput>& rules) {
  Result<NetworkPolicy> policy = NetworkPolicy::allowList(rules, "network");
  if (!policy) {
    throw std::invalid_argument(policy.error().message);
  }
  return *policy;
}

inline RuleInput ruleFor(std::string origin) {
  RuleInput rule;
  rule.origin = std::move(origin);
  rule.maxRequestBytes = limits::kGatewayBodyBytes;
  rule.maxResponseBytes = limits::kGatewayBodyBytes;
  return rule;
}

/// Allows one origin. `change`: what else the rule says.
inline NetworkPolicy allowing(const std::string& origin, const std::function<void(RuleInput&)>& change = {}) {
  RuleInput rule = ruleFor(origin);
  if (change) {
    change(rule);
  }
  return policyOf({rule});
}

}  // namespace stitchkit::testing
