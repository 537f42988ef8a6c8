#include "rpc/reply.h"

#include "rpc/base/log.h"

namespace stitchkit {
namespace {

void answerDropped(JsonReply::Deliver& deliver) {
  if (deliver) {
    std::exchange(deliver, nullptr)(Error(ErrorKind::kInternal, "The request was dropped without an answer")
                                        .withPrivate("a handler let go of its reply"));
  }
}

}  // namespace

JsonReply& JsonReply::operator=(JsonReply&& other) noexcept {
  if (this != &other) {
    answerDropped(deliver_);
    deliver_ = std::exchange(other.deliver_, nullptr);
  }
  return *this;
}

JsonReply::~JsonReply() {
  answerDropped(deliver_);
}

void JsonReply::operator()(Result<boost::json::value> result) {
  if (!deliver_) {
    logEvent(LogLevel::kError, "answered-twice", {{"message", "the second answer of a request is dropped"}});
    return;
  }
  std::exchange(deliver_, nullptr)(std::move(result));
}

}  // namespace stitchkit
