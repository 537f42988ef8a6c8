#include "codingtools/tool_definitions.h"
namespace stitchkit {
boost::json::array toolDefinitions(const Toolset&) {
  return {};
}
}  // namespace stitchkit
