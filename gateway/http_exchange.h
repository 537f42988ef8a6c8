// One HTTP/1.1 exchange with an upstream, by cpp-httplib's client between two fences: what goes in was checked by us, and
// what comes back it sees only after ResponseFence has read it whole.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/response_fence.h"
#include "gateway/upstream_connection.h"

namespace stitchkit {

/// What goes to an upstream. Everything in it is free of CR, LF and NUL.
struct UpstreamRequest {
  std::string method;
  std::string target;               ///< origin form
  std::vector<HeaderField> fields;  ///< `host` and all others but the framing
  std::string_view body;
};

struct ExchangeFailure {
  Error error;
  bool nothingCame = false;  ///< no byte of a response: on a connection that was used before, perhaps it was closing
};

/// Blocks. `failure.error` has the kinds of ResponseFence and UpstreamConnection.
boost::system::result<UpstreamResponse, ExchangeFailure> exchange(UpstreamConnection& connection,
                                                                  const UpstreamRequest& request,
                                                                  std::uint64_t responseLimit,
                                                                  const CancelSignal& signal,
                                                                  GatewayClock::time_point deadline);
[[noreturn]] void throw_exception_from_error(const ExchangeFailure& failure, const boost::source_location& where);

}  // namespace stitchkit
