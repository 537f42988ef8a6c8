// Artifacts that the host keeps (PROTOCOL.md, section 7).
#pragma once

#include "codingtools/artifacts.h"
#include "rpc/host_requests.h"

#include <string>
#include <utility>

namespace stitchkit {

/// What the host answers is checked: kInternal when it is of another shape, or more than was asked for. Its
/// SPILL_REFERENCE_UNKNOWN is passed on. Fails closed: kForbidden without a word on who made an artifact.
class HostArtifacts : public Artifacts {
 public:
  /// `host` must outlive it. `toolset` tells a host with many stores which one is meant.
  HostArtifacts(const HostRequests& host, std::string toolset) : host_(host), toolset_(std::move(toolset)) {}

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
  [[nodiscard]] Result<boost::json::value> ask(const char* method, boost::json::object params,
                                               const std::stop_token& stop) const;
  [[nodiscard]] Result<std::string> readBytes(const std::string& reference, std::uint64_t offset, std::size_t count,
                                              std::optional<std::uint64_t>& totalBytes,
                                              const std::stop_token& stop) const;
  [[nodiscard]] Result<std::string> readSome(const std::string& reference, std::uint64_t offset, std::size_t count,
                                             std::optional<std::uint64_t>& totalBytes,
                                             const std::stop_token& stop) const;
  [[nodiscard]] Result<std::string> fromNextCharacter(const std::string& reference, const std::string& bytes,
                                                      std::size_t maxBytes, ArtifactWindow& window,
                                                      const std::stop_token& stop) const;

  const HostRequests& host_;
  std::string toolset_;
};

}  // namespace stitchkit
