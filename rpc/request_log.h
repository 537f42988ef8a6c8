// What became of the host's requests: counts, and a line of the log for each that was refused.
#pragma once

#include <boost/json/value.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "rpc/base/error.h"
#include "rpc/base/log.h"

namespace stitchkit {

/// What a line about a request needs to know of it.
struct RequestLabel {
  std::string method;
  std::string_view member;  ///< which of the parameters `handle`, `toolset` and `process` it has; "" for none
  std::string name;         ///< its value
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();

  /// `params` as the host sent them.
  static RequestLabel of(std::string_view method, const boost::json::value& params);
};

/// Loop-thread only.
class RequestLog {
 public:
  RequestLog();

  struct Counts {
    std::uint64_t ended = 0;                           ///< requests, with a result or an error
    std::map<std::string_view, std::uint64_t> errors;  ///< by `data.code`
  };

  /// A request has ended with a result.
  void answered() { ++counts_.ended; }
  /// A request, or what was no request at all (`label` without a method), has been answered with an error. The line
  /// holds nothing of what the host sent but known names: parameters may be secrets.
  void failed(const RequestLabel& label, const Error& error);

  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  Counts counts_;
  LogBudget lines_;
};

}  // namespace stitchkit
