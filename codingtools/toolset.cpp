#include "codingtools/toolset.h"

#include <algorithm>
#include <array>
#include <utility>

namespace stitchkit {

namespace {

constexpr std::array<std::string_view, 9> kTools{"read_file",    "write_file",  "edit_file",   "list_directory", "glob",
                                                 "search_files", "run_command", "read_output", "search_output"};

}  // namespace

Toolset::Toolset(ToolServices& services, std::string id, std::shared_ptr<ToolSession> session, ToolsetRules rules)
    : services_(services),
      id_(std::move(id)),
      session_(std::move(session)),
      rules_(std::move(rules)),
      guard_(services.host, id_, rules_.guard),
      hostArtifacts_(services.host) {}

bool Toolset::offers(std::string_view tool) const {
  if (tool == "run_command") {
    return !rules_.shell.executables.empty();
  }
  if (tool == "read_output" || tool == "search_output") {
    return rules_.artifacts != ArtifactKeeper::kNone;
  }
  return std::find(kTools.begin(), kTools.end(), tool) != kTools.end();
}

std::vector<std::string_view> Toolset::tools() const {
  std::vector<std::string_view> offered;
  std::copy_if(kTools.begin(), kTools.end(), std::back_inserter(offered),
               [this](std::string_view tool) { return offers(tool); });
  return offered;
}

}  // namespace stitchkit
