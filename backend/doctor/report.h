// Findings as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "backend/doctor/finding.h"

namespace stitchkit {

/// Whether isolation works: no check has failed.
bool isolationWorks(const std::vector<Finding>& findings);

/// A line a check, then what to do about each problem, then the verdict. Ends with a newline.
std::string textReport(const std::vector<Finding>& findings);

/// One line: `{"ok", "version", "checks": [{"name", "status": "ok"|"warning"|"failed", "cause"?, "message",
/// "hint"?}]}`.
std::string jsonReport(const std::vector<Finding>& findings);

}  // namespace stitchkit
