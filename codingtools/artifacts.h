// Long command output that is kept elsewhere and read in parts: by the sidecar or by the host.
#pragma once

#include "rpc/base/error.h"

#include <boost/json/object.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace stitchkit {

/// A part of an artifact. Bytes that are no UTF-8 stand as U+FFFD in the text.
struct ArtifactWindow {
  std::uint64_t offset = 0;  ///< where the text begins: after the one asked for when that lay inside a character
  std::string text;
  std::uint64_t bytes = 0;                  ///< of the artifact that the text stands for
  std::optional<std::uint64_t> totalBytes;  ///< of the whole; none when the host does not say
};

struct ArtifactMatch {
  std::int64_t line = 0;  ///< from 1
  std::string text;
};

/// Thread-safe; blocks on the disk or the host. A reference that names nothing: kSpillReferenceUnknown with
/// `details.reference`. kCancelled.
class Artifacts {
 public:
  virtual ~Artifacts() = default;

  /// @param request the operation that made it, which reading it asks for again.
  /// @return the reference.
  [[nodiscard]] virtual Result<std::string> write(std::string_view content, const boost::json::object& request,
                                                  const std::stop_token& stop) const = 0;

  /// The operation that made it, where that is known. To be asked before any byte is read.
  [[nodiscard]] virtual Result<std::optional<boost::json::object>> authorization(const std::string& reference,
                                                                                 const std::stop_token& stop) const = 0;

  /// At most `maxBytes` and the rest of a character; empty only at and beyond the end.
  [[nodiscard]] virtual Result<ArtifactWindow> read(const std::string& reference, std::uint64_t offset,
                                                    std::size_t maxBytes, const std::stop_token& stop) const = 0;

  /// The first lines that hold the text.
  [[nodiscard]] virtual Result<std::vector<ArtifactMatch>> search(const std::string& reference,
                                                                  const std::string& query, std::size_t maxMatches,
                                                                  const std::stop_token& stop) const = 0;
};

}  // namespace stitchkit
