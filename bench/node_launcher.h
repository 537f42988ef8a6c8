// The baseline: what a JavaScript host pays that starts Bubblewrap itself and lets guests read and write its files.
#pragma once

#include "bench/child.h"
#include "bench/line_channel.h"
#include "bench/measure.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace stitchkit::bench {

class NodeLauncher {
 public:
  /// nullptr when there is no `node` on the PATH that this user may start. `script` is node_launcher.mjs.
  static std::unique_ptr<NodeLauncher> find(const std::filesystem::path& script,
                                            const std::vector<std::string>& profile);

  /// One action, timed by Node itself, in seconds: "true", "write" (4 KiB by mkdir and tee) or "read" (by cat).
  double run(const std::string& action);

 private:
  NodeLauncher(const std::string& node, const std::filesystem::path& script, const std::vector<std::string>& profile);

  LineChannel channel_;
  Child child_;
};

}  // namespace stitchkit::bench
