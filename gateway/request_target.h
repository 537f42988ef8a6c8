// The target of a guest's request: brought into the one form that is checked and then sent.
#pragma once

#include <string>
#include <string_view>

#include "rpc/base/error.h"

namespace stitchkit {

enum class TargetFault : std::uint8_t {
  kMalformed,      ///< bytes that no target may hold, a fragment, a broken percent-encoding
  kNotOriginForm,  ///< does not begin with exactly one `/`: `*`, `http://...`, `host:port`, `//host/`
  kBackslash,      ///< some servers take it for a `/`
};

struct RequestTarget {
  std::string path;   ///< begins with one `/`; no dot segments, encoded ones neither
  std::string query;  ///< with its `?`; "" for none

  [[nodiscard]] std::string text() const { return path + query; }
};

/// Resolves dot segments and encodes what a URL does not hold (`"<>` and the like), as browsers do. An encoded `/`
/// stays encoded.
boost::system::result<RequestTarget, TargetFault> parseRequestTarget(std::string_view target);
[[noreturn]] void throw_exception_from_error(const TargetFault& fault, const boost::source_location& where);

/// Servers differ about which file the path means: it hides a separator (`%2f`, `%5c`), an end (`%00`) or a dot segment
/// with a parameter (`..;x`). Such a path is not let through where prefixes are checked.
bool pathIsAmbiguous(std::string_view path);

}  // namespace stitchkit
