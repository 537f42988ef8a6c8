// A directory tree as a case sees it.
#pragma once

#include <map>
#include <string>

#include "conformance/json_text.h"

namespace conformance {

/// {relative path: {kind, mode, bytes?, sha256?, text?, target?}}, or such an entry when `path` is no directory, or
/// null when nothing is there.
Json snapshotTree(const std::string& path);

/// The same of a directory, and which inode each entry is and when it was last written.
struct TreeState {
  Json entries = Json::object();
  std::map<std::string, std::string> identities;
};
TreeState stateOfTree(const std::string& path);

/// {relative path: its entry now, null when it is gone} for all that differ. `identities`: one that was replaced or
/// written with the same content differs too, but for directories.
Json changesOf(const TreeState& before, const TreeState& now, bool identities);

}  // namespace conformance
