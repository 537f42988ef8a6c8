#include "gateway/request_fence.h"

#include <boost/asio/buffer.hpp>

#include <algorithm>
#include <utility>

#include "gateway/beast_feed.h"
#include "gateway/header_block.h"
#include "gateway/header_fields.h"
#include "rpc/base/limits.h"

namespace stitchkit {
namespace {

namespace http = boost::beast::http;

// Node and browsers send nothing else, and a lower-case `get` is another method to some servers and the same to others.
bool methodIsPlain(std::string_view method) {
  return std::all_of(method.begin(), method.end(), [](char c) { return (c >= 'A' && c <= 'Z') || c == '-'; });
}

}  // namespace

std::size_t GuestRequest::count(std::string_view name) const {
  return static_cast<std::size_t>(
      std::count_if(fields.begin(), fields.end(), [name](const HeaderField& field) { return field.name == name; }));
}

std::string_view GuestRequest::first(std::string_view name) const {
  const auto found =
      std::find_if(fields.begin(), fields.end(), [name](const HeaderField& field) { return field.name == name; });
  return found == fields.end() ? std::string_view() : std::string_view(found->value);
}

RequestFence::RequestFence() {
  parser_.header_limit(limits::kGatewayHeaderBytes);
  parser_.body_limit(boost::none);
  parser_.on_chunk_header(judgeChunkExtensions);
}

std::size_t RequestFence::feed(std::string_view bytes) {
  switch (state_) {
    case State::kHeader:
      return feedHeader(bytes);
    case State::kBody:
      return feedBody(bytes);
    default:
      return 0;
  }
}

std::size_t RequestFence::feedHeader(std::string_view bytes) {
  // Mostly a header comes whole, and need not be kept.
  if (header_.empty() && !bytes.starts_with('\r')) {
    const std::size_t whole = headerBlockEnd(bytes.substr(0, limits::kGatewayHeaderBytes), 0);
    if (whole != std::string_view::npos) {
      finishHeader(bytes.substr(0, whole));
      return whole;
    }
  }
  const std::size_t before = header_.size();
  const std::size_t room = limits::kGatewayHeaderBytes - before;
  header_.append(bytes.substr(0, room));
  std::size_t skipped = 0;
  if (!emptyLineSkipped_ && header_.starts_with("\r\n")) {
    header_.erase(0, 2);
    skipped = 2;
    emptyLineSkipped_ = true;
  }
  const std::size_t end = headerBlockEnd(header_, before < skipped ? 0 : before - skipped);
  if (end == std::string::npos) {
    if (!headerBlockIsStrict(std::string_view(header_).substr(lineStart_), false)) {
      refuse(400);
      return std::min(bytes.size(), room);
    }
    lineStart_ = header_.rfind('\n') + 1;  // npos + 1 is 0
    if (header_.size() >= limits::kGatewayHeaderBytes) {
      refuse(431);
    }
  } else {
    const std::size_t taken = end + skipped - before;
    header_.resize(end);
    finishHeader(header_);
    return taken;
  }
  return std::min(bytes.size(), room);
}

void RequestFence::finishHeader(std::string_view block) {
  if (!headerBlockIsStrict(block, true)) {
    refuse(400);
    return;
  }
  if (headerFieldLines(block) > limits::kGatewayHeaderFields) {
    refuse(431);
    return;
  }
  boost::beast::error_code ec;
  parser_.put(boost::asio::buffer(block.data(), block.size()), ec);
  if ((ec && ec != http::error::need_more) || !parser_.is_header_done()) {
    refuse(400);
    return;
  }
  takeFields();
  if (const unsigned status = judgeFraming(); status != 0) {
    refuse(status);
    return;
  }
  header_.clear();
  state_ = State::kHeaderDone;
}

void RequestFence::takeFields() {
  const auto& message = parser_.get();
  request_.method = std::string(message.method_string());
  request_.target = std::string(message.target());
  // The message's own keep_alive() looks at its first Connection only.
  request_.keepAlive = message.version() >= 11 && parser_.keep_alive();
  for (const auto& field : message) {
    request_.fields.push_back({lowerCaseAscii(field.name_string()), std::string(field.value())});
  }
}

// What is wrong with it as an HTTP status, or 0.
unsigned RequestFence::judgeFraming() {
  const std::size_t lengths = request_.count("content-length");
  const std::size_t codings = request_.count("transfer-encoding");
  if (!methodIsPlain(request_.method) || lengths + codings > 1) {
    return 400;
  }
  if (lengths == 1) {
    const std::string_view length = request_.first("content-length");
    if (!isContentLength(length)) {
      return 400;
    }
    request_.contentLength = std::stoull(std::string(length));
  }
  if (codings == 1) {
    if (parser_.get().version() < 11 || !equalsAscii(request_.first("transfer-encoding"), "chunked")) {
      return 400;
    }
    request_.chunked = true;
  }
  if (request_.count("expect") > 0) {
    if (request_.count("expect") > 1 || !equalsAscii(request_.first("expect"), "100-continue")) {
      return 417;
    }
    request_.expectsContinue = parser_.get().version() >= 11;
  }
  return 0;
}

void RequestFence::admitBody(std::uint64_t limit) {
  if (request_.contentLength.value_or(0) > limit) {
    refuse(413);
    return;
  }
  if (!request_.hasBody()) {
    complete();
    return;
  }
  parser_.body_limit(limit);
  parser_.eager(true);
  state_ = State::kBody;
}

std::size_t RequestFence::feedBody(std::string_view bytes) {
  const FeedResult fed = feedParser(parser_, pending_, bytes);
  if (fed.ec) {
    refuse(fed.ec == http::error::body_limit ? 413 : 400);
  } else if (parser_.is_done()) {
    complete();
  }
  return fed.taken;
}

std::size_t RequestFence::bodyBytes() const {
  return parser_.get().body().size();
}

void RequestFence::complete() {
  request_.body = std::move(parser_.get().body());
  state_ = State::kComplete;
}

void RequestFence::refuse(unsigned status) {
  status_ = status;
  state_ = State::kRefused;
}

}  // namespace stitchkit
