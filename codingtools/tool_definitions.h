// The coding tools as a model is told about them.
#pragma once

#include "codingtools/tool_limits.h"

#include <boost/json/array.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stitchkit {

/// Lines that `search_output` gives when it is not told how many, unless `maxSearchResults` is less. The document has
/// no default for it, since what is filled in could not be told from what was asked for.
inline constexpr std::size_t kUsualOutputMatches = 20;

/// What decides which tools a toolset has, and what their schemas say.
struct ToolOffer {
  ToolLimits limits;
  std::vector<std::string> executables;  ///< as a model names them; without any there is no `run_command`
  bool keepsOutput = false;              ///< otherwise there is no `read_output` and no `search_output`

  [[nodiscard]] bool has(std::string_view tool) const;
};

/// `tools` in the answer of `coding.create`, in the order of the document, from which all texts and schemas come. Each
/// schema stands for itself, without references, and names the toolset's executables and its limits where they are
/// bounds or defaults.
boost::json::array toolDefinitions(const ToolOffer& offer);

}  // namespace stitchkit
