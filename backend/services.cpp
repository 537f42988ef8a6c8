#include "backend/services.h"

#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>

#include "backend/launch/system_call_filter.h"

namespace stitchkit {
namespace {

constexpr const char* kGatewaySocket = "gateway.sock";

std::string realResolvConf() {
  char real[PATH_MAX];
  return ::realpath("/etc/resolv.conf", real) != nullptr ? std::string(real) : std::string();
}

}  // namespace

BackendServices::BackendServices(AsioLoop& ownLoop, Workers& ownWorkers, BackendConfig settled, CgroupTree ownCgroups)
    : loop(ownLoop),
      workers(ownWorkers),
      config(std::move(settled)),
      cgroups(std::move(ownCgroups)),
      layout(config.stateDirectory, config.name),
      templates(layout, config.durability),
      sessions(layout, config.durability),
      system(probeSystemLayout()),
      supportDirectory(config.stateDirectory + "/support"),
      support(supportDirectory),
      gateway(config.gateway),
      warm(loop.context(), static_cast<std::size_t>(config.warmLaunches)) {}

Result<UniqueFd> openGatewaySocket(const StoredSession& session) {
  return listenInDirectory(session.stagingPath(), kGatewaySocket);
}

Result<std::shared_ptr<const PreparedProfile>> makeProfile(BackendServices& services, const StoredSession& session,
                                                           const NetworkPolicy& policy, const Resources& resources,
                                                           std::shared_ptr<SessionCgroup> cgroup) {
  Result<SupportPaths> support = services.support.ensure();
  if (!support) {
    return std::move(support).error();
  }
  struct stat workspace {};
  if (::fstat(session.workspace().descriptor(), &workspace) != 0) {
    return internalError("The workspace cannot be used", "fstat", errno);
  }
  const Result<std::string>& systemCalls = systemCallFilter();
  if (!systemCalls) {
    return systemCalls.error();
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
  profile.systemCalls = *systemCalls;
  profile.coverKernel = services.config.staysRoot;
  profile.system = services.system;
  return std::make_shared<const PreparedProfile>(services.config.bubblewrap, profile,
                                                 DirectoryIdentity{workspace.st_dev, workspace.st_ino},
                                                 services.config.warden.get(), std::move(cgroup));
}

Result<void> checkEnforceable(const BackendServices& services, const SessionLimits& limits) {
  for (const CgroupController controller : kAllControllers) {
    if (isLimited(limits, controller) && !services.cgroups.supports(controller)) {
      const std::string name = resourceName(controller);
      return Error(ErrorKind::kUnavailable, "The ceiling " + name + " cannot be enforced on this machine")
          .withReason("no-cgroup")
          .withDetail("resource", name)
          .withHint(
              "It takes a control group that the sidecar may use: start it as root, or in a delegated one "
              "(systemd-run --user --scope -p Delegate=yes), or name one with --cgroup. Or leave it out.")
          .withPrivate(services.config.cgroups->note);
    }
  }
  return {};
}

Result<std::shared_ptr<SessionCgroup>> makeCgroup(BackendServices& services, const StoredSession& session,
                                                  SessionLimits limits) {
  constexpr std::size_t kNamedDigits = 16;
  static std::atomic<std::uint64_t> number = 0;
  limits.processes = limits.processes.value_or(limits::kSessionProcesses);
  // A handle on a session may begin while the launches of the one before it still end.
  return services.cgroups.makeSession(
      session.state().sessionId.substr(0, kNamedDigits) + "-" + std::to_string(++number), limits);
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
