// JavaScript hosts, as the benchmark drives them: scripts that do an action when told and time it themselves.
#pragma once

#include "bench/child.h"
#include "bench/line_channel.h"
#include "bench/measure.h"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <string>

namespace stitchkit::bench {

/// The first `node` on the PATH that this user may start and that is of version 20 or later; "" when there is none.
std::string findNode();

/// A running script that ends with serveTimed (timed_actions.mjs). Ended by end() or killed by the destructor.
class NodeScript {
 public:
  /// `argument` is the script's only one, as JSON.
  NodeScript(const std::string& node, const std::filesystem::path& script, const nlohmann::json& argument);

  /// One action of the script's, timed by Node itself, in seconds.
  double run(const std::string& action);
  /// The same, each time it is called.
  [[nodiscard]] Measurement running(const std::string& action);
  /// Ends the input and waits. Throws unless the script exits with 0.
  void end();

 private:
  LineChannel channel_;
  Child child_;
};

}  // namespace stitchkit::bench
