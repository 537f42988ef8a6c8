// What follows from the headers that a rule injects, and must not be shown either.
#pragma once

#include <string>
#include <vector>

#include "gateway/policy.h"

namespace stitchkit {

/// Not empty each, sorted, none twice: each value; what follows the scheme of an `authorization` (from 8 bytes); the
/// decoded pair of `Basic`, and of that the password (from 4 bytes) or, where it is empty, the user's name (from 8), as
/// is customary for keys; what a value that holds `%41` decodes to (from 8), since not every encoder touches its
/// percent signs; all of these as UTF-8, too.
std::vector<std::string> secretForms(const std::vector<HeaderField>& injected);

}  // namespace stitchkit
