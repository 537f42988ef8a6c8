#include "backend/services.h"

#include <climits>
#include <cstdlib>

namespace stitchkit {
namespace {

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
      support(config.stateDirectory + "/support") {}

Result<std::shared_ptr<const PreparedProfile>> makeProfile(BackendServices& services, const std::string& workspacePath,
                                                           NetworkPolicy policy, const Resources& resources) {
  Result<SupportPaths> support = services.support.ensure();
  if (!support) {
    return std::move(support).error();
  }
  LaunchProfile profile;
  profile.workspace = workspacePath;
  profile.etcDirectory = support->etcDirectory;
  profile.helper = support->helper;
  profile.network = policy == NetworkPolicy::kAllowAll ? NetworkMode::kHost : NetworkMode::kDenied;
  profile.resolvConf = policy == NetworkPolicy::kAllowAll ? realResolvConf() : std::string();
  profile.tmpBytes = resources.tmpBytes;
  profile.coverProcSys = services.config.staysRoot;
  profile.system = services.system;
  return std::make_shared<const PreparedProfile>(services.config.bubblewrap, profile);
}

Grade gradeOf(const BackendServices& services, NetworkPolicy policy) {
  Grade grade;
  if (policy != NetworkPolicy::kAllowAll) {
    grade.restrictions.emplace_back("network-denied");
  }
  grade.restrictions.emplace_back("write-contained");
  // A guest of a sidecar that stays root can read what only root may read below /usr (FACTS.md, 0).
  (services.config.staysRoot ? grade.gaps : grade.restrictions).emplace_back("secrets-hidden");
  grade.restrictions.emplace_back("process-contained");
  return grade;
}

}  // namespace stitchkit
