#include "conformance/case_run.h"

#include "conformance/scene.h"
#include "conformance/step_runner.h"

namespace conformance {
namespace {

using Problem = std::optional<std::string>;

Failure noDirectory() {
  return {"start", "", "no directory for the case can be made", "", ""};
}

}  // namespace

CaseRunner::CaseRunner(const Contract& contract, const Settings& settings) : contract_(contract), settings_(settings) {}
CaseRunner::~CaseRunner() = default;

std::optional<Failure> CaseRunner::run(const Case& testCase) {
  if (testCase.oneProcess) {
    return runShared(testCase);
  }
  Scene scene(contract_, settings_.command);
  if (!scene.directory().valid()) {
    return noDirectory();
  }
  StepRunner steps(testCase, contract_, settings_, scene);
  Problem problem = steps.run();
  problem = problem ? problem : steps.closeAll();
  return problem ? std::optional<Failure>(steps.describe(*problem)) : std::nullopt;
}

std::optional<Failure> CaseRunner::runShared(const Case& testCase) {
  if (!shared_) {
    shared_ = std::make_unique<Scene>(contract_, settings_.command);
    if (!shared_->directory().valid()) {
      return noDirectory();
    }
  }
  std::optional<Failure> failure;
  {
    StepRunner steps(testCase, contract_, settings_, *shared_);
    Problem problem = steps.run();
    problem = problem ? problem : steps.cleanUp();
    failure = problem ? std::optional<Failure>(steps.describe(*problem)) : std::nullopt;
  }
  if (failure) {
    shared_.reset();
  } else {
    shared_->directory().clearOutside();
  }
  return failure;
}

std::optional<Failure> CaseRunner::finish() {
  const auto shared = std::move(shared_);
  Connection* peer = shared ? shared->find("main") : nullptr;
  const Problem problem =
      peer == nullptr ? Problem() : Scene::close(*peer, std::chrono::steady_clock::now() + settings_.stepTimeout);
  return problem ? std::optional<Failure>(
                       {"end", "the shared process's input is closed", *problem, "", peer->process().errorTail()})
                 : std::nullopt;
}

}  // namespace conformance
