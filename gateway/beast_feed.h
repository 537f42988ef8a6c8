// Feeds a Beast parser with bytes as they come. The parser takes only what it can finish (a chunk's header line, the
// trailers), so that the rest has to be shown to it again with what follows.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/core/string_type.hpp>
#include <boost/beast/http/error.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "rpc/base/limits.h"

namespace stitchkit {

struct FeedResult {
  std::size_t taken;            ///< of the new bytes; fewer than all only when the message is done, or after an error
  boost::beast::error_code ec;  ///< never need_more; `header_limit` when what cannot be finished has become too long
};

/// For a parser's on_chunk_header(): Beast lets a line feed pass inside a quoted extension, where others see the line's
/// end (RFC 9112, 11.2).
inline void judgeChunkExtensions(std::uint64_t /*size*/, boost::beast::string_view extensions,
                                 boost::beast::error_code& ec) {
  const auto isControl = [](char c) { return (static_cast<unsigned char>(c) < ' ' && c != '\t') || c == '\x7f'; };
  if (std::any_of(extensions.begin(), extensions.end(), isControl)) {
    ec = boost::beast::http::error::bad_chunk_extension;
  }
}

/// The same comes of the same bytes in whatever pieces: the parser never sees more than kGatewayChunkLineBytes + 1 of
/// them, and takes them, or has before it what is too long.
/// @param pending what the parser could not take yet; kept by the caller between calls.
template <class Parser>  // of a string_body
FeedResult feedParser(Parser& parser, std::string& pending, std::string_view bytes) {
  namespace http = boost::beast::http;
  // Beast asserts that it is shown more than four bytes when it has seen this, and no four would tell it more.
  if (pending == "0\r\n" && bytes.size() == 1 && parser.get().body().empty()) {
    pending.append(bytes);
    return {1, {}};
  }
  const std::size_t kept = pending.size();
  std::string_view input = bytes;
  if (kept != 0) {
    pending.append(bytes);
    input = pending;
  }
  std::size_t used = 0;
  boost::beast::error_code ec;
  while (!parser.is_done() && used < input.size()) {
    const std::size_t shown = std::min(input.size() - used, limits::kGatewayChunkLineBytes + 1);
    const std::size_t step = parser.put(boost::asio::buffer(input.data() + used, shown), ec);
    used += step;
    if (ec == http::error::need_more) {
      ec = {};
    }
    if (ec || step == 0) {
      break;
    }
  }
  if (ec || parser.is_done()) {
    pending.clear();
    return {used > kept ? used - kept : 0, ec};
  }
  if (input.size() - used > limits::kGatewayChunkLineBytes) {
    pending.clear();
    return {bytes.size(), http::error::header_limit};
  }
  pending = std::string(input.substr(used));
  return {bytes.size(), ec};
}

}  // namespace stitchkit
