// The sidecar as its host sees it: a process that takes lines and answers lines.
#pragma once

#include "bench/child.h"
#include "bench/line_channel.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace stitchkit::bench {

/// One request as a line, ready to be sent as often as wanted (one at a time: its id is always the same).
std::string requestLine(std::string_view method, const nlohmann::json& params, int id = 1);

/// Throws when the answer is an error, naming it. Looks at the first bytes only, so that it costs nothing.
void expectResult(std::string_view answer);

/// A running sidecar. Ended by end() or killed by the destructor.
class Sidecar {
 public:
  Sidecar(const std::string& program, const std::string& stateDirectory, Transport transport,
          const std::vector<std::string>& options = {});

  [[nodiscard]] LineChannel& channel() noexcept { return channel_; }
  [[nodiscard]] pid_t pid() const noexcept { return child_.pid(); }

  /// Sends one prepared line and waits for its answer, which is checked and valid until the next call.
  std::string_view exchange(std::string_view line);
  /// The `result` of one request.
  nlohmann::json call(std::string_view method, const nlohmann::json& params);
  /// The whole answer to one, an error too.
  nlohmann::json answer(std::string_view method, const nlohmann::json& params);
  /// Ends the input and waits. Throws unless the sidecar exits with 0.
  void end();

 private:
  LineChannel channel_;
  Child child_;
};

}  // namespace stitchkit::bench
