#include "backend/doctor/trial_launch.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <boost/system/system_error.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/diagnosis/cause.h"
#include "backend/diagnosis/set_up_cause.h"
#include "backend/doctor/trial_directory.h"
#include "backend/launch/orphan_reaper.h"
#include "backend/methods.h"
#include "rpc/asio_loop.h"
#include "rpc/base/limits.h"
#include "rpc/method_table.h"
#include "rpc/workers.h"
#include "schema/openrpc.h"

namespace stitchkit {
namespace {

namespace json = boost::json;

/// A sidecar without a host: its methods are called from here.
class TrialSidecar {
 public:
  explicit TrialSidecar(BackendConfig config)
      : work_(loop_.context().get_executor()),
        workers_(loop_, 1),
        backend_(loop_, workers_, std::move(config), hooks()),
        orphans_(loop_.context()) {
    addBackendMethods(methods_, backend_, {limits::kMessageBytes, [] { return nullptr; }, [](SidecarStats&) {}});
  }
  ~TrialSidecar() {
    try {
      bool stopped = false;
      backend_.stopAll([&stopped] { stopped = true; });
      while (!stopped) {
        loop_.context().run_one();
      }
    } catch (const std::exception&) {  // what is left dies with this process
    }
  }
  TrialSidecar(const TrialSidecar&) = delete;
  TrialSidecar& operator=(const TrialSidecar&) = delete;

  /// As a request comes: checked by the schema, which also gives the defaults.
  Result<json::value> call(const char* method, json::object params) {
    Result<json::object> checked = OpenRpc::instance().checkParams(method, std::move(params));
    if (!checked) {
      return std::move(checked).error();
    }
    std::optional<Result<json::value>> answer;
    (*methods_.find(method))(CallContext{std::make_shared<Cancellation>()}, std::move(*checked),
                             JsonReply([&answer](Result<json::value> result) { answer.emplace(std::move(result)); }));
    while (!answer) {
      loop_.context().run_one();
    }
    return std::move(*answer);
  }

 private:
  static Backend::Hooks hooks() {
    return {[](const std::string&) { return Result<void>(); },
            [](std::vector<std::string> cgroups) -> Result<std::shared_ptr<Warden>> {
              Result<Warden> warden = Warden::start(std::move(cgroups));
              if (!warden) {
                return std::move(warden).error();
              }
              return std::make_shared<Warden>(std::move(*warden));
            },
            [](const std::string&, const GatewayFailure&) {}};
  }

  AsioLoop loop_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  Workers workers_;
  Backend backend_;
  OrphanReaper orphans_;
  MethodTable methods_;
};

Result<void> runProgram(TrialSidecar& sidecar, const json::string& handle) {
  Result<json::value> ran = sidecar.call(
      "session.run", {{"handle", handle}, {"command", {{"executable", "/bin/sh"}, {"args", {"-c", ":"}}}}});
  if (!ran) {
    return std::move(ran).error();
  }
  if (const std::int64_t code = ran->at("exitCode").to_number<std::int64_t>(); code != 0) {
    return unavailableBecause("The sandbox", Cause::kSetUpFailed)
        .withPrivate("/bin/sh in it ended with " + std::to_string(code) + ": " +
                     std::string(ran->at("stderr").as_string()));
  }
  return {};
}

Result<void> launch(TrialSidecar& sidecar) {
  Result<json::value> created =
      sidecar.call("backend.create", {{"template", {{"template", "doctor"}}}, {"network", "deny-all"}});
  if (!created) {
    return std::move(created).error();
  }
  const json::string handle = created->at("handle").as_string();
  if (Result<void> ran = runProgram(sidecar, handle); !ran) {
    return ran;
  }
  Result<json::value> removed = sidecar.call("handle.delete", {{"handle", handle}});
  return removed ? Result<void>() : Result<void>(std::move(removed).error());
}

}  // namespace

LaunchTrial tryLaunch(const LaunchPlan& plan) {
  const auto begin = std::chrono::steady_clock::now();
  LaunchTrial trial;
  const TrialDirectory directory(plan.stateDirectory);
  if (!directory.valid()) {
    trial.error = unavailableBecause("The state directory", Cause::kStateDirectoryNotWritable);
    return trial;
  }
  BackendConfig config;
  config.stateDirectory = directory.path();
  config.bubblewrap = plan.bubblewrap;
  config.staysRoot = plan.staysRoot;
  config.cgroups = plan.cgroups;
  try {
    TrialSidecar sidecar(std::move(config));
    if (Result<void> done = launch(sidecar); !done) {
      trial.error = std::move(done).error();
    }
  } catch (const std::exception&) {
    trial.error = thrownError();
  }
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
  trial.milliseconds = taken.count();
  return trial;
}

Error thrownError() {
  constexpr const char* kWhat = "The session could not be tried";
  try {
    throw;  // cppcheck-suppress rethrowNoCurrentException; the header asks for a handler around the call
  } catch (const boost::system::system_error& fault) {
    return unavailableBecause(kWhat, causeOfSpawn(fault.code().value())).withPrivate(fault.what());
  } catch (const std::system_error& fault) {
    return unavailableBecause(kWhat, causeOfSpawn(fault.code().value())).withPrivate(fault.what());
  } catch (const std::exception& fault) {
    return unavailableBecause(kWhat, Cause::kSetUpFailed).withPrivate(fault.what());
  }
}

}  // namespace stitchkit
