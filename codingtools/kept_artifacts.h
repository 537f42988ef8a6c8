// Artifacts in the sidecar's own store.
#pragma once

#include "codingtools/artifact_store.h"
#include "codingtools/artifacts.h"

namespace stitchkit {

class KeptArtifacts : public Artifacts {
 public:
  /// `store` must outlive it.
  explicit KeptArtifacts(ArtifactStore& store) : store_(store) {}

  [[nodiscard]] Result<std::string> write(std::string_view content, const boost::json::object& request,
                                          const std::stop_token& stop) const override;
  [[nodiscard]] Result<std::optional<boost::json::object>> authorization(const std::string& reference,
                                                                         const std::stop_token& stop) const override;
  [[nodiscard]] Result<ArtifactWindow> read(const std::string& reference, std::uint64_t offset, std::size_t maxBytes,
                                            const std::stop_token& stop) const override;
  [[nodiscard]] Result<std::vector<ArtifactMatch>> search(const std::string& reference, const std::string& query,
                                                          std::size_t maxMatches,
                                                          const std::stop_token& stop) const override;

 private:
  ArtifactStore& store_;
};

}  // namespace stitchkit
