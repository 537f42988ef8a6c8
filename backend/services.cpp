#include "backend/services.h"

#include <sys/stat.h>

#include <cerrno>
#include <climits>
#include <cstdlib>

namespace stitchkit {
namespace {

constexpr const char* kGatewaySocket = "gateway.sock";

std::string realResolvConf() {
  char real[PATH_MAX];
  return ::realpath("/etc/resolv.conf", real) != nullptr ? std::string(real) : std::string();
}

}  // namespace

BackendServices::BackendServices(AsioLoop& ownLoop, Workers& ownWorkers, BackendConfig settled)
    : loop(ownLoop),
      workers(ownWorkers),
      config(std::move(settled)),
      layout(config.stateDirectory, config.name),
      templates(layout),
      sessions(layout),
      system(probeSystemLayout()),
      supportDirectory(config.stateDirectory + "/support"),
      support(supportDirectory),
      gateway(config.gateway),
      warm(loop.context(), static_cast<std::size_t>(config.warmLaunches)) {}

Result<UniqueFd> openGatewaySocket(const StoredSession& session) {
  return listenInDirectory(session.stagingPath(), kGatewaySocket);
}

Result<std::shared_ptr<const PreparedProfile>> makeProfile(BackendServices& services, const StoredSession& session,
                                                           const NetworkPolicy& policy, const Resources& resources) {
  Result<SupportPaths> support = services.support.ensure();
  if (!support) {
    return std::move(support).error();
  }
  struct stat workspace {};
  if (::fstat(session.workspace().descriptor(), &workspace) != 0) {
    return internalError("The workspace cannot be used", "fstat", errno);
  }
  LaunchProfile profile;
  profile.workspace = session.workspacePath();
  profile.etcDirectory = support->etcDirectory;
  profile.helper = support->helper;
  profile.gateway = session.stagingPath() + "/" + kGatewaySocket;
  profile.network = policy.kind() == NetworkPolicy::Kind::kAllowAll ? NetworkMode::kHost : NetworkMode::kDenied;
  profile.resolvConf = policy.kind() == NetworkPolicy::Kind::kAllowAll ? realResolvConf() : std::string();
  profile.tmpBytes = resources.tmpBytes;
  profile.softOpenFiles = services.config.softOpenFiles;
  profile.coverKernel = services.config.staysRoot;
  profile.system = services.system;
  return std::make_shared<const PreparedProfile>(services.config.bubblewrap, profile,
                                                 DirectoryIdentity{workspace.st_dev, workspace.st_ino},
                                                 services.config.warden.get());
}

Grade gradeOf(const BackendServices& services, const NetworkPolicy& policy) {
  Grade grade;
  if (policy.kind() == NetworkPolicy::Kind::kDenyAll) {
    grade.restrictions.emplace_back("network-denied");
  }
  grade.restrictions.emplace_back("write-contained");
  // A guest of a sidecar that stays root can read what only root may read below /usr (FACTS.md, 0).
  (services.config.staysRoot ? grade.gaps : grade.restrictions).emplace_back("secrets-hidden");
  grade.restrictions.emplace_back("process-contained");
  return grade;
}

}  // namespace stitchkit
