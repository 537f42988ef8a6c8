// A request to an upstream as bytes, written by cpp-httplib's client.
//
// The library never touches a socket: the gateway's loop carries the bytes, so that no call needs a thread. And it
// never sees a response: ResponseFence has read that whole, within limits that the library does not have.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gateway/policy.h"

namespace stitchkit {

/// What goes to an upstream. Everything in it is free of CR, LF and NUL but the body.
struct UpstreamRequest {
  std::string method;
  std::string target;               ///< origin form
  std::vector<HeaderField> fields;  ///< `host` and all others but the framing
  std::string_view body;
};

/// All bytes of the request, with fresh framing.
std::string writeRequest(const UpstreamRequest& request);

}  // namespace stitchkit
