// The answer to one request: given exactly once, from any thread, or by default when it is dropped.
#pragma once

#include <boost/json/value.hpp>

#include <functional>
#include <memory>
#include <utility>

#include "rpc/base/error.h"

namespace stitchkit {

/// The untyped answer. Movable; the first call answers, later ones are a fault of ours and are ignored with a log line.
/// Destroyed without a call, it answers INTERNAL_SERVER_ERROR, so that no request is ever lost. Thread-safe in that it
/// may be called and destroyed on any thread (one at a time).
class JsonReply {
 public:
  using Deliver = std::function<void(Result<boost::json::value>)>;

  explicit JsonReply(Deliver deliver) : deliver_(std::move(deliver)) {}
  JsonReply(JsonReply&& other) noexcept : deliver_(std::exchange(other.deliver_, nullptr)) {}
  JsonReply& operator=(JsonReply&& other) noexcept;
  JsonReply(const JsonReply&) = delete;
  JsonReply& operator=(const JsonReply&) = delete;
  ~JsonReply();

  void operator()(Result<boost::json::value> result);

 private:
  Deliver deliver_;
};

/// The typed answer: handlers see no JSON. `encode` is found by argument-dependent lookup.
template <class T>
class Reply {
 public:
  explicit Reply(JsonReply reply) : reply_(std::make_shared<JsonReply>(std::move(reply))) {}

  void operator()(T value) const { (*reply_)(encode(std::move(value))); }
  void operator()(Error error) const { (*reply_)(std::move(error)); }
  void operator()(Result<T> result) const {
    if (result) {
      (*this)(std::move(*result));
    } else {
      (*this)(std::move(result).error());
    }
  }

 private:
  std::shared_ptr<JsonReply> reply_;  // shared, so that handlers can keep it in std::function
};

}  // namespace stitchkit
