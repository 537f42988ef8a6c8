// A state directory over which one sidecar after another is killed, and what has to be found there each time.
#pragma once

#include "tests/support/session.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace stitchkit::testing {

/// What one file may hold after a kill; kNoFile: it may be missing.
using Contents = std::set<std::string>;
inline const std::string kNoFile = "(none)";

/// What the host knows of one session.
struct KnownSession {
  Json state;
  std::map<std::string, Contents> files;
  bool mayBeGone = false;  ///< its deletion was asked for
  std::string artifact;    ///< what each artifact holds, if there may be any
};

/// The files of the templates that tests make.
Json templateFiles(const std::string& variant);

/// Entries of a state directory that ARCHITECTURE.md does not name, things half done and leases, when no sidecar owns a
/// session there; whole paths.
std::vector<std::string> strays(const std::string& stateDirectory);

class CrashWorld {
 public:
  explicit CrashWorld(StartAs startAs) : startAs_(startAs) { renew(); }

  /// A new state directory and a sidecar over it.
  void renew();
  [[nodiscard]] Sidecar& sidecar() { return *sidecar_; }
  [[nodiscard]] const std::string& place() const { return place_; }
  /// The directory of a session.
  [[nodiscard]] std::string pathOf(const Json& state) const;
  [[nodiscard]] std::string templatePath(const std::string& key) const;
  [[nodiscard]] const std::string& marker() const { return marker_; }

  /// A session that the host knows from now on, live, with the template's files and `files` in it.
  Session& open(const std::map<std::string, std::string>& files = {});
  /// What the host knows of the only session.
  [[nodiscard]] KnownSession& known() { return *known_; }
  /// The host has asked for a template; it may be there after a kill.
  void expectTemplate(const std::string& variant) { variant_ = variant; }
  [[nodiscard]] const std::string& variant() const { return variant_; }

  /// The sidecar is dead: a new one is started, and everything looked at, by the wire and on the disk. What is wrong,
  /// one line each. Afterwards no session is left.
  std::vector<std::string> faultsAfterDeath();
  /// Ends the sidecar as a host does; what is wrong then.
  std::vector<std::string> faultsAfterEnd();

 private:
  void start();
  void fault(const std::string& what) { faults_.push_back(what); }
  void checkGuests();
  void checkKnown();
  void checkFiles(const std::string& handle);
  void checkArtifacts(const std::string& handle);
  void checkOthers();
  void checkTemplates();
  void checkPlace();

  StartAs startAs_;
  std::shared_ptr<StateDirectory> directory_;
  std::string place_;
  std::string marker_;
  std::string variant_ = "0";
  std::unique_ptr<Sidecar> sidecar_;
  std::unique_ptr<Session> session_;
  std::optional<KnownSession> known_;
  std::vector<std::string> faults_;
};

}  // namespace stitchkit::testing
