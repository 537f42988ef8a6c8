// Reads an upstream's response within limits, before cpp-httplib sees it: the library has no ceiling for a line, a
// header or a chunk, takes the first of two lengths, and decodes percent signs in values (FACTS.md, 3).
#pragma once

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/policy.h"
#include "rpc/base/error.h"

namespace stitchkit {

/// A whole response. Names in lower case.
struct UpstreamResponse {
  unsigned status = 0;
  std::vector<HeaderField> fields;
  std::string body;
  bool keepAlive = false;  ///< the upstream takes another request on this connection
};

/// A pure state machine for one response.
class ResponseFence {
 public:
  /// @param toHead the request was HEAD: no body follows, whatever the header says.
  /// @param conditional the request asked for 304, which is a redirect to others.
  ResponseFence(bool toHead, bool conditional, std::uint64_t bodyLimit);

  /// Takes bytes. kLimit when a limit is passed, kNetworkDenied for what is never passed on (a redirect, an
  /// informational response that nobody asked for), kInternal for a response that breaks HTTP or is compressed.
  Result<void> feed(std::string_view bytes);
  /// The connection ended. kInternal when the response is not whole.
  Result<void> end();

  [[nodiscard]] bool complete() const noexcept { return complete_; }
  /// Bytes of a response have come.
  [[nodiscard]] bool begun() const noexcept { return begun_; }
  /// Once it is complete.
  [[nodiscard]] UpstreamResponse take();

 private:
  using Parser = boost::beast::http::response_parser<boost::beast::http::string_body>;

  void startOver();
  Result<std::size_t> feedHeader(std::string_view bytes);
  Result<void> finishHeader();
  Result<void> feedBody(std::string_view bytes);
  Result<void> judge();

  bool toHead_;
  bool conditional_;
  std::uint64_t bodyLimit_;
  std::unique_ptr<Parser> parser_;  // anew for each informational response
  std::string header_;
  std::string pending_;
  unsigned informational_ = 0;
  bool begun_ = false;
  bool surplus_ = false;  // bytes behind the response: the connection is not used again
  bool complete_ = false;
  std::vector<HeaderField> fields_;
};

}  // namespace stitchkit
