// How tools begin: from the text of a path to what the host lets them work with.
#pragma once

#include "codingtools/tool_context.h"
#include "codingtools/tool_path.h"
#include "rpc/base/error.h"
#include "rpc/base/unique_fd.h"

#include <boost/json/object.hpp>

#include <string>

namespace stitchkit {

/// The path, when it is one and the policy of paths lets it be seen.
Result<WorkspacePath> seenPath(const ToolContext& context, const std::string& text, RootPath root);

/// A directory, open for reading its entries, and the same before and after the host was asked.
struct AllowedDirectory {
  WorkspacePath path = WorkspacePath::root();
  UniqueFd directory;
};
/// `request` is what the host is asked, whether the directory is there or not.
Result<AllowedDirectory> openAllowedDirectory(const ToolContext& context, const std::string& text,
                                              const boost::json::object& request);

}  // namespace stitchkit
