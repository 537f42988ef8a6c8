// Every method's name once, with the function that serves it.
#pragma once

#include <boost/json/object.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "rpc/cancellation.h"
#include "rpc/reply.h"

namespace stitchkit {

/// What a handler knows of its request beside the parameters.
struct CallContext {
  std::shared_ptr<Cancellation> cancellation;
};

/// Called on the loop thread with parameters that have passed the schema.
using JsonHandler = std::function<void(CallContext, boost::json::object, JsonReply)>;

/// Filled at start, constant afterwards.
class MethodTable {
 public:
  /// Asked on the loop thread before each call, whatever its method: an error is the answer, and the call is not made.
  using Gate = std::function<Result<void>()>;
  void setGate(Gate gate) { gate_ = std::move(gate); }
  [[nodiscard]] Result<void> admit() const { return gate_ ? gate_() : Result<void>(); }

  /// What becomes of a request that is cancelled before its turn has come.
  enum class OnCancel : std::uint8_t {
    kEnds,     ///< it ends with CANCELLED
    kAnswers,  ///< its handler is called all the same, and has an answer for it
  };

  /// `handler(CallContext, Params, Reply<T>)`; Params needs `Result<void> decode(boost::json::object&, Params&)` (what
  /// a schema cannot say, such as the rules of paths, is refused there), T needs `boost::json::value encode(T)`; both
  /// are found by argument-dependent lookup.
  template <class Params, class T, class Handler>
  void add(std::string name, Handler handler, OnCancel onCancel = OnCancel::kEnds) {
    methods_.emplace(std::move(name), Method{[handler = std::move(handler)](
                                                 CallContext call, boost::json::object params, JsonReply reply) {
                                               Params decoded;
                                               if (Result<void> fits = decode(params, decoded); !fits) {
                                                 reply(std::move(fits).error());
                                                 return;
                                               }
                                               handler(std::move(call), std::move(decoded), Reply<T>(std::move(reply)));
                                             },
                                             onCancel});
  }

  /// nullptr when there is no such method.
  [[nodiscard]] const JsonHandler* find(std::string_view name) const {
    const auto found = methods_.find(name);
    return found == methods_.end() ? nullptr : &found->second.handler;
  }
  [[nodiscard]] bool answersCancelled(std::string_view name) const {
    const auto found = methods_.find(name);
    return found != methods_.end() && found->second.onCancel == OnCancel::kAnswers;
  }

 private:
  struct Method {
    JsonHandler handler;
    OnCancel onCancel;
  };

  Gate gate_;
  std::map<std::string, Method, std::less<>> methods_;
};

}  // namespace stitchkit
