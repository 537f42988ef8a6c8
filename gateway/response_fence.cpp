#include "gateway/response_fence.h"

#include <algorithm>
#include <utility>

#include "gateway/beast_feed.h"
#include "gateway/header_block.h"
#include "gateway/header_fields.h"
#include "rpc/base/limits.h"

namespace stitchkit {
namespace {

Error brokenError(std::string detail) {
  return Error(ErrorKind::kInternal, "The upstream's response is not valid HTTP").withPrivate(std::move(detail));
}

Error tooLargeError(const char* what) {
  return Error(ErrorKind::kLimit, std::string("The upstream's ") + what + " is larger than allowed");
}

std::size_t countOf(const std::vector<HeaderField>& fields, std::string_view name) {
  return static_cast<std::size_t>(
      std::count_if(fields.begin(), fields.end(), [name](const HeaderField& field) { return field.name == name; }));
}

bool lengthsAreSound(const std::vector<HeaderField>& fields) {
  return std::all_of(fields.begin(), fields.end(), [](const HeaderField& field) {
    return field.name != "content-length" || isContentLength(field.value);
  });
}

bool valueIs(const std::vector<HeaderField>& fields, std::string_view name, std::string_view wanted) {
  return std::all_of(fields.begin(), fields.end(),
                     [&](const HeaderField& field) { return field.name != name || equalsAscii(field.value, wanted); });
}

}  // namespace

ResponseFence::ResponseFence(bool toHead, bool conditional, std::uint64_t bodyLimit)
    : toHead_(toHead), conditional_(conditional), bodyLimit_(bodyLimit) {
  startOver();
}

void ResponseFence::startOver() {
  parser_ = std::make_unique<Parser>();
  parser_->header_limit(limits::kUpstreamHeaderBytes);
  parser_->body_limit(boost::none);
  parser_->on_chunk_header(judgeChunkExtensions);
  header_.clear();
}

Result<void> ResponseFence::feed(std::string_view bytes) {
  begun_ = begun_ || !bytes.empty();
  while (!bytes.empty() && !complete_ && !parser_->is_header_done()) {
    Result<std::size_t> taken = feedHeader(bytes);
    if (!taken) {
      return std::move(taken).error();
    }
    bytes.remove_prefix(*taken);
  }
  if (complete_) {
    surplus_ = surplus_ || !bytes.empty();
    return {};
  }
  return bytes.empty() ? Result<void>() : feedBody(bytes);
}

Result<std::size_t> ResponseFence::feedHeader(std::string_view bytes) {
  const std::size_t before = header_.size();
  header_.append(bytes.substr(0, limits::kUpstreamHeaderBytes - before));
  const std::size_t end = headerBlockEnd(header_, before);
  if (end == std::string::npos) {
    if (header_.size() >= limits::kUpstreamHeaderBytes) {
      return tooLargeError("response header");
    }
    return header_.size() - before;
  }
  header_.resize(end);
  if (Result<void> finished = finishHeader(); !finished) {
    return std::move(finished).error();
  }
  return end - before;
}

Result<void> ResponseFence::finishHeader() {
  boost::beast::error_code ec;
  parser_->skip(toHead_);
  parser_->put(boost::asio::buffer(header_), ec);
  if ((ec && ec != boost::beast::http::error::need_more) || !parser_->is_header_done()) {
    return brokenError("header: " + ec.message());
  }
  const unsigned status = parser_->get().result_int();
  constexpr unsigned kInformationalMost = 8;
  if (status >= 100 && status < 200 && status != 101 && ++informational_ <= kInformationalMost) {
    startOver();
    return {};
  }
  for (const auto& field : parser_->get()) {
    fields_.push_back({lowerCaseAscii(field.name_string()), std::string(field.value())});
  }
  if (Result<void> sound = judge(); !sound) {
    return sound;
  }
  header_ = {};
  parser_->body_limit(bodyLimit_);
  parser_->eager(true);
  complete_ = parser_->is_done() || toHead_ || status == 204 || status == 304 ||
              parser_->content_length() == boost::optional<std::uint64_t>(0);
  return {};
}

Result<void> ResponseFence::judge() {
  const unsigned status = parser_->get().result_int();
  if (status < 100 || status >= 600) {
    return brokenError("status " + std::to_string(status));
  }
  if (status < 200 || (status >= 300 && status < 400 && !(status == 304 && conditional_))) {
    return Error(ErrorKind::kNetworkDenied, status == 101   ? "The upstream switched protocols"
                                            : status < 200  ? "The upstream sent too many informational responses"
                                            : status == 304 ? "The upstream answered 304, which nobody asked for"
                                                            : "The upstream redirects, which is not followed");
  }
  const std::size_t lengths = countOf(fields_, "content-length");
  const std::size_t codings = countOf(fields_, "transfer-encoding");
  if (lengths + codings > 1 || !lengthsAreSound(fields_) || !valueIs(fields_, "transfer-encoding", "chunked")) {
    return brokenError("ambiguous framing");
  }
  if (!valueIs(fields_, "content-encoding", "identity")) {
    return Error(ErrorKind::kInternal, "The upstream compressed its response although that was not asked for");
  }
  if (!toHead_ && parser_->content_length().value_or(0) > bodyLimit_) {
    return tooLargeError("response");
  }
  return {};
}

Result<void> ResponseFence::feedBody(std::string_view bytes) {
  const FeedResult fed = feedParser(*parser_, pending_, bytes);
  if (fed.ec == boost::beast::http::error::body_limit) {
    return tooLargeError("response");
  }
  if (fed.ec) {
    return brokenError("body: " + fed.ec.message());
  }
  complete_ = parser_->is_done();
  surplus_ = complete_ && fed.taken < bytes.size();
  return {};
}

Result<void> ResponseFence::end() {
  if (!complete_ && parser_->is_header_done() && parser_->need_eof() && pending_.empty()) {
    boost::beast::error_code ec;
    parser_->put_eof(ec);
    complete_ = !ec;
    surplus_ = true;
  }
  return complete_ ? Result<void>() : Error(ErrorKind::kInternal, "The upstream's response was cut short");
}

UpstreamResponse ResponseFence::take() {
  UpstreamResponse response;
  response.status = parser_->get().result_int();
  response.fields = std::move(fields_);
  response.keepAlive = parser_->keep_alive() && !surplus_;
  response.body = std::move(parser_->get().body());
  return response;
}

}  // namespace stitchkit
