// What an upstream answers: a case's description made into slices of bytes and waits.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "conformance/http_message.h"

namespace conformance {

/// One thing that an upstream does while it answers.
struct AnswerAction {
  enum class Kind : std::uint8_t {
    kSend,   ///< `text` are the bytes; afterwards the peer has taken them
    kAwait,  ///< `text` names the event
  };
  Kind kind = Kind::kSend;
  std::string text;
};

enum class AfterAnswer : std::uint8_t { kKeep, kClose, kReset };

struct AnswerPlan {
  std::vector<AnswerAction> actions;
  AfterAnswer after = AfterAnswer::kKeep;
};

/// Answers by target, or in the order of the requests; the last one is given again and again. Not thread-safe.
class UpstreamScript {
 public:
  /// @param described  `{answers, targets}` as case.schema.json has them; without both every answer is `ok`
  explicit UpstreamScript(const Json& described);

  /// The answer to the next request, or what is wrong with the description.
  std::optional<std::string> next(const HttpMessage& request, AnswerPlan& plan);

 private:
  Json answers_;
  Json targets_;
  std::size_t given_ = 0;
};

}  // namespace conformance
