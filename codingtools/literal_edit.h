// Replacing exact text by literal text.
#pragma once

#include "rpc/base/error.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace stitchkit {

struct Edited {
  std::string content;
  std::size_t replacements = 0;
};

/// Replaces `oldText` (not empty) where it stands in `content`, from the front, occurrences that overlap an earlier one
/// not counted. All other bytes stay as they are, `newText` is taken literally and never searched. kNotFound with
/// `details.occurrences` 0 and a hint when only line ends or leading white space stand in the way; kConflict with the
/// number when there are several and not `all` of them are meant.
Result<Edited> replaceLiteral(std::string_view content, std::string_view oldText, std::string_view newText, bool all);

}  // namespace stitchkit
