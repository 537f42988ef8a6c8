// Makes a whole tree from its description in a case.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "conformance/host_files.h"
#include "conformance/json_text.h"

namespace conformance {

/// `entries` is {relative path: entry}, `many` a list of runs of alike files; case.schema.json tells their shapes.
/// Directories above an entry are made when they are missing. `resolve` puts paths in for {workspace} and its like in
/// the targets of links.
std::optional<std::string> makeEntries(HostFiles& files, const std::string& directory, const Json& entries,
                                       const Json& many, const std::function<std::string(const Json&)>& resolve);

}  // namespace conformance
