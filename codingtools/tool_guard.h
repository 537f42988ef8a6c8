// What a tool may do beside what the file system allows: the host's word, and the paths that are denied.
#pragma once

#include "codingtools/glob_pattern.h"
#include "codingtools/path_gate.h"
#include "codingtools/workspace_path.h"
#include "rpc/base/error.h"
#include "rpc/host_requests.h"

#include <boost/json/object.hpp>

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

namespace stitchkit {

/// The host's policy as `coding.create` sets it.
struct GuardRules {
  enum class Operations : std::uint8_t { kAllow, kDeny, kAskHost } operations = Operations::kDeny;
  bool askAboutPaths = false;
  std::vector<GlobPattern> denied;  ///< matched against paths as tools name them; a directory denies all below it
};

/// For tool threads, which may wait here for the host. Thread-safe. Everything fails closed: an error of the host, a
/// late answer, one of another shape or no host refuses with kForbidden; kCancelled when `stop` is requested.
class ToolGuard : public PathGate {
 public:
  /// `host` must outlive it; `toolset` is the name that the host knows it by.
  ToolGuard(const HostRequests& host, std::string toolset, GuardRules rules)
      : host_(host), toolset_(std::move(toolset)), rules_(std::move(rules)) {}

  /// kForbidden when no operation is allowed at all: to be asked first, so that nobody learns what the workspace holds.
  [[nodiscard]] Result<void> checkAny() const;

  /// Before an operation has any effect. `request` describes it as PROTOCOL.md, section 7, says. kForbidden without
  /// details when it is not allowed.
  [[nodiscard]] Result<void> authorize(const boost::json::object& request, const std::stop_token& stop) const;

  /// The path and each directory above it, outermost first, the workspace itself only when it is the path. kForbidden
  /// with the first that is denied in `details.path`.
  [[nodiscard]] Result<void> checkPath(const WorkspacePath& path, const std::stop_token& stop) const;

  Result<std::vector<bool>> allowed(const std::vector<std::string>& paths, const std::stop_token& stop) override {
    return answersFor(paths, stop);
  }
  /// Whether a question may go to the host, and with it wait.
  [[nodiscard]] bool asksHost() const {
    return rules_.askAboutPaths || rules_.operations == GuardRules::Operations::kAskHost;
  }
  /// Whether every path may be seen, so that nobody needs to ask.
  [[nodiscard]] bool allowsEveryPath() const { return !rules_.askAboutPaths && rules_.denied.empty(); }

 private:
  [[nodiscard]] Result<std::vector<bool>> answersFor(const std::vector<std::string>& paths,
                                                     const std::stop_token& stop) const;
  [[nodiscard]] Result<std::vector<bool>> askHost(const std::vector<std::string>& paths,
                                                  const std::stop_token& stop) const;
  [[nodiscard]] bool denies(const std::string& path) const;

  const HostRequests& host_;
  std::string toolset_;
  GuardRules rules_;
};

}  // namespace stitchkit
