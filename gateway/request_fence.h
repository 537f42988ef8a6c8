// Reads a guest's HTTP/1.1 request, byte by hostile byte, within limits; nothing else ever sees those bytes.
//
// Boost.Beast's strict parser does the reading. Beside it stand the rules that it does not have: no bare or folded line
// ends, one length, `chunked` as the only coding, a ceiling of fields, and trailers that are dropped. Whatever could be
// framed in two ways is refused, and the connection ends, so that no byte behind it becomes a request (RFC 9112, 6.3
// and 11.2).
#pragma once

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/policy.h"

namespace stitchkit {

/// A request whose header is complete. Names in lower case, values without white space at their ends.
struct GuestRequest {
  std::string method;
  std::string target;
  std::vector<HeaderField> fields;  ///< in their order, repeated ones too; never trailers
  std::string body;                 ///< once the request is complete
  std::optional<std::uint64_t> contentLength;
  bool chunked = false;
  bool keepAlive = false;
  bool expectsContinue = false;

  [[nodiscard]] bool hasBody() const { return chunked || contentLength.value_or(0) > 0; }
  /// How many fields have this lower-case name, and the first one's value.
  [[nodiscard]] std::size_t count(std::string_view name) const;
  [[nodiscard]] std::string_view first(std::string_view name) const;
};

/// A pure state machine for one request; no I/O, no clock.
class RequestFence {
 public:
  enum class State : std::uint8_t {
    kHeader,      ///< wants more bytes
    kHeaderDone,  ///< request() is there without its body; go on with admitBody()
    kBody,        ///< wants more bytes
    kComplete,    ///< request() is whole
    kRefused,     ///< status() says why; no byte of this connection may be read as a request any more
  };

  RequestFence();

  /// Takes bytes until the header is done, the request complete or refused, or all are taken.
  /// @return how many were taken; the others belong to what comes next.
  std::size_t feed(std::string_view bytes);
  /// After kHeaderDone: reads the body up to so many bytes. Refuses a declared length above with 413 at once.
  void admitBody(std::uint64_t limit);

  [[nodiscard]] State state() const noexcept { return state_; }
  /// No byte of a request has come.
  [[nodiscard]] bool untouched() const noexcept { return header_.empty() && state_ == State::kHeader; }
  /// 400, 408 (never by itself), 413, 417 or 431.
  [[nodiscard]] unsigned status() const noexcept { return status_; }
  /// Bytes of the body so far.
  [[nodiscard]] std::size_t bodyBytes() const;
  [[nodiscard]] GuestRequest& request() noexcept { return request_; }

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  std::size_t feedHeader(std::string_view bytes);
  std::size_t feedBody(std::string_view bytes);
  void finishHeader(std::string_view block);
  unsigned judgeFraming();
  void takeFields();
  void refuse(unsigned status);
  void complete();

  State state_ = State::kHeader;
  unsigned status_ = 0;
  bool emptyLineSkipped_ = false;
  std::size_t lineStart_ = 0;  // of the header's line that has not ended
  std::string header_;         // the header block as it came
  std::string pending_;        // bytes of the body that the parser could not take yet
  Parser parser_;
  GuestRequest request_;
};

}  // namespace stitchkit
