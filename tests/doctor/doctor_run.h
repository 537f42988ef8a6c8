// The sidecar's binary in surroundings that a test chooses.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/scratch.h"
#include "tests/support/spawn.h"

namespace stitchkit::testing {

using Json = nlohmann::json;
using Arguments = std::vector<std::string>;

/// Who runs it, where, and with which bubblewrap.
struct Surroundings {
  Arguments wrapper;             ///< a program with arguments that executes what follows; none: nothing
  std::optional<uid_t> user;     ///< becomes it before all that
  Arguments options;             ///< of the sidecar, after `--state-dir`
  std::string state = "/state";  ///< the state directory, below the folder
};

/// `surroundings` of this folder, with its options.
Arguments surroundings(Arguments options);
/// The ordinary user when this is root; else whoever this is.
std::optional<uid_t> ordinaryUser();

/// What `doctor --json` says. Fails the test unless stdout is one JSON document with `ok` as the exit status has it.
Json doctorReport(const ScratchFolder& folder, const Surroundings& where);
/// The check of a report.
Json checkOf(const Json& report, const std::string& name);

/// Requests to `serve --serial`, one a line; its answers in their order.
std::vector<Json> converse(const ScratchFolder& folder, const Surroundings& where, const std::vector<Json>& requests);

/// A program that answers `--version` like bubblewrap 0.4.0 and knows no option of a later one.
std::string oldBubblewrap(const ScratchFolder& folder);
/// A copy of bubblewrap with the bit, of a user who is neither root nor the ordinary one; only root can make it.
std::string setuidBubblewrap(const ScratchFolder& folder);

}  // namespace stitchkit::testing
