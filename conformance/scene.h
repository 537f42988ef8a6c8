// Where a case plays: a directory, and the implementations that run on it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "conformance/connection.h"
#include "conformance/host_files.h"

namespace conformance {

class Scene {
 public:
  /// `command` as in Settings.
  Scene(const Contract& contract, const std::vector<std::string>& command) : contract_(contract), command_(command) {}

  [[nodiscard]] const CaseDirectory& directory() const { return directory_; }

  /// Starts one more, or one in the place of an older one of this name. nullopt, or why that is impossible.
  std::optional<std::string> start(const std::string& name, const std::vector<std::string>& arguments, Framing framing,
                                   const std::string& backendName);
  /// Null when none was started by this name.
  [[nodiscard]] Connection* find(const std::string& name) const;
  [[nodiscard]] const std::map<std::string, std::unique_ptr<Connection>>& all() const { return connections_; }

  /// Closes the input of one and waits for its end, which must be exit code 0 with no message left.
  static std::optional<std::string> close(Connection& peer, Deadline deadline);

 private:
  const Contract& contract_;
  const std::vector<std::string>& command_;
  CaseDirectory directory_;
  std::map<std::string, std::unique_ptr<Connection>> connections_;
};

}  // namespace conformance
