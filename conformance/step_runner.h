// Carries out the steps of one case. Each kind of step stands in a file of its own: message_steps.cpp,
// process_steps.cpp, file_steps.cpp, host_steps.cpp, gateway_steps.cpp.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/case_run.h"
#include "conformance/events.h"
#include "conformance/expand.h"
#include "conformance/fake_host.h"
#include "conformance/host_files.h"
#include "conformance/scene.h"
#include "conformance/tree_snapshot.h"
#include "conformance/upstream.h"

namespace conformance {

class StepRunner {
 public:
  using Problem = std::optional<std::string>;

  StepRunner(const Case& testCase, const Contract& contract, const Settings& settings, Scene& scene);
  StepRunner(const StepRunner&) = delete;
  StepRunner& operator=(const StepRunner&) = delete;
  /// The implementations may live longer; their host does not.
  ~StepRunner();

  /// Starts the implementation, unless it runs already, and carries out all steps.
  Problem run();
  /// The end of a case that has the scene for itself.
  Problem closeAll();
  /// The end of a case that leaves the scene to others: its sessions are deleted, and no message is left.
  Problem cleanUp();
  /// What is known about a failure at this point.
  [[nodiscard]] Failure describe(std::string problem) const;

 private:
  using Action = Problem (StepRunner::*)(const Json& step);
  static const std::map<std::string, Action>& actions();

  Problem runSteps(const std::vector<Json>& steps, const std::string& prefix);
  Problem runStep(const Json& step);
  Problem startConnection(const std::string& name, const Json& args);
  void attachHost(Connection& peer);
  Connection* connection(const Json& step) { return scene_.find(step.value("on", "main")); }
  [[nodiscard]] std::string pathIn(const Json& step, const Json& text) const;
  [[nodiscard]] Deadline deadline(const Json& step) const;
  [[nodiscard]] Meanwhile answerMeanwhile(const Json& step);

  Problem call(const Json& step);
  Problem await(const Json& step);
  Problem send(const Json& step);
  Problem sendText(const Json& step);
  Problem sendBase64(const Json& step);
  Problem expect(const Json& step);
  Problem expectAll(const Json& step);
  Problem expectNone(const Json& step);
  Problem drop(const Json& step);
  Problem closeInput(const Json& step);
  Problem closeOutput(const Json& step);
  Problem expectEnd(const Json& step);
  Problem signal(const Json& step);
  Problem restart(const Json& step);
  Problem start(const Json& step);
  Problem repeat(const Json& step);
  Problem host(const Json& step);
  Problem expectHost(const Json& step);
  Problem hostFile(const Json& step);
  Problem hostLink(const Json& step);
  Problem hostDirectory(const Json& step);
  Problem hostFifo(const Json& step);
  Problem hostEntries(const Json& step);
  Problem hostMove(const Json& step);
  Problem hostRemove(const Json& step);
  Problem hostMode(const Json& step);
  Problem hostTree(const Json& step);
  Problem hostChanges(const Json& step);
  Problem fifoText(const Json& step);
  Problem fifoEnd(const Json& step);
  Problem upstream(const Json& step);
  Problem upstreamSaw(const Json& step);
  Problem upstreamReached(const Json& step);
  Problem upstreamLeft(const Json& step);
  Problem release(const Json& step);
  Problem gateway(const Json& step);
  Problem awaitGateway(const Json& step);
  Problem brokerErrors(const Json& step);
  Problem secrets(const Json& step);

  /// Until what was sent is in the pipe.
  Problem flush(Connection& peer, const Json& step);
  Problem sendSlices(const Json& step, const Json& slices, bool base64);
  static Problem takeAnswer(Connection& peer, const Json& id, Deadline until, Json& answer);
  Problem awaitAnswer(const Json& step, const Json& id);
  Problem judgeAnswer(const Json& step, const Json& answer);
  Problem capture(const Json& step, const Json& from);
  Problem takeMatching(const Json& step, const Json& wanted);
  Problem deleteSession(Connection& peer, const Json& handle);
  /// The result of a call that a step makes by itself.
  Problem callMethod(Connection& peer, const Json& step, const std::string& method, const Json& params, Json& result);
  Upstream* findUpstream(const Json& name);
  Problem judgeUpstream(const Json& name, const Json& step);
  Problem judgeGateway(const Json& step, const Json& exitCode, const std::string& output, const Json& errors);
  /// What upstreams and the host have seen of a step `gateway`.
  Problem judgeAround(const Json& step);
  Problem takeBrokerErrors(const Json& step, const Json& wanted);
  Problem findSecret(std::string_view text, const char* where) const;
  /// On disk, and at the end of stderr.
  Problem findSecretsLeft() const;

  const Case& case_;
  const Contract& contract_;
  const Settings& settings_;
  Scene& scene_;
  HostFiles files_;
  FakeHost fakeHost_;
  Variables variables_;
  std::map<std::string, Json> calls_;       ///< ids of calls that are to be awaited, by name
  std::vector<Json> handles_;               ///< of all sessions that were given to this case
  std::map<std::string, TreeState> trees_;  ///< as `hostEntries` left them, by directory
  Events events_;                           ///< that upstreams wait for
  std::map<std::string, std::unique_ptr<Upstream>> upstreams_;
  std::vector<std::string> secrets_;  ///< that nobody but upstreams may see
  std::string at_ = "start";
  Json current_;
};

}  // namespace conformance
