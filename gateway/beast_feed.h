// Feeds a Beast parser with bytes as they come. The parser takes only what it can finish (a chunk's header line, the
// trailers), so that the rest has to be shown to it again with what follows.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/http/error.hpp>

#include <string>
#include <string_view>

#include "rpc/base/limits.h"

namespace stitchkit {

struct FeedResult {
  std::size_t taken;            ///< of the new bytes; fewer than all only when the message is done, or after an error
  boost::beast::error_code ec;  ///< never need_more; `header_limit` when what cannot be finished has become too long
};

/// @param pending what the parser could not take yet; kept by the caller between calls.
template <class Parser>
FeedResult feedParser(Parser& parser, std::string& pending, std::string_view bytes) {
  namespace http = boost::beast::http;
  const std::size_t kept = pending.size();
  std::string_view input = bytes;
  if (kept != 0) {
    pending.append(bytes);
    input = pending;
  }
  std::size_t used = 0;
  boost::beast::error_code ec;
  while (!parser.is_done() && used < input.size()) {
    const std::size_t step = parser.put(boost::asio::buffer(input.data() + used, input.size() - used), ec);
    used += step;
    if (ec || step == 0) {
      break;
    }
  }
  if (ec == http::error::need_more) {
    ec = {};
  }
  if (ec || parser.is_done()) {
    pending.clear();
    return {used > kept ? used - kept : 0, ec};
  }
  pending = std::string(input.substr(used));
  if (pending.size() > limits::kGatewayChunkLineBytes) {
    ec = http::error::header_limit;
  }
  return {bytes.size(), ec};
}

}  // namespace stitchkit
