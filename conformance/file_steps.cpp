#include "conformance/bytes.h"
#include "conformance/host_entries.h"
#include "conformance/matcher.h"
#include "conformance/step_runner.h"

namespace conformance {

using Problem = StepRunner::Problem;

namespace {

std::optional<int> modeIn(const Json& step) {
  return step.contains("mode") ? std::optional<int>(std::stoi(step["mode"].get<std::string>(), nullptr, 8))
                               : std::nullopt;
}

}  // namespace

Problem StepRunner::hostFile(const Json& step) {
  const Json content = step.value("content", Json(""));
  const auto bytes =
      content.is_string() ? content.get<std::string>() : decodeBase64(content["base64"].get<std::string>());
  return bytes ? files_.makeFile(pathIn(step, step["hostFile"]), *bytes, modeIn(step))
               : Problem("the case holds wrong base64");
}

Problem StepRunner::hostLink(const Json& step) {
  return files_.makeLink(pathIn(step, step["hostLink"]), pathIn(step, step["target"]));
}

Problem StepRunner::hostDirectory(const Json& step) {
  return files_.makeDirectory(pathIn(step, step["hostDirectory"]), modeIn(step));
}

Problem StepRunner::hostFifo(const Json& step) {
  return files_.makeFifo(pathIn(step, step["hostFifo"]));
}

Problem StepRunner::hostEntries(const Json& step) {
  const std::string directory = pathIn(step, step["hostEntries"]);
  const Problem problem =
      makeEntries(files_, directory, step.value("entries", Json::object()), step.value("many", Json::array()),
                  [&](const Json& text) { return pathIn(step, text); });
  trees_[directory] = stateOfTree(directory);
  return problem;
}

Problem StepRunner::hostMove(const Json& step) {
  return files_.move(pathIn(step, step["hostMove"]), pathIn(step, step["to"]));
}

Problem StepRunner::hostRemove(const Json& step) {
  return files_.remove(pathIn(step, step["hostRemove"]));
}

Problem StepRunner::hostMode(const Json& step) {
  return files_.setMode(pathIn(step, step["hostMode"]), modeIn(step).value_or(0755));
}

Problem StepRunner::hostTree(const Json& step) {
  return mismatch(step["is"], snapshotTree(pathIn(step, step["hostTree"])));
}

Problem StepRunner::hostChanges(const Json& step) {
  const std::string directory = pathIn(step, step["hostChanges"]);
  const auto before = trees_.find(directory);
  if (before == trees_.end()) {
    return "no step hostEntries has made " + directory;
  }
  return mismatch(step["are"], changesOf(before->second, stateOfTree(directory), step.value("identities", false)));
}

Meanwhile StepRunner::answerMeanwhile(const Json& step) {
  Connection* peer = connection(step);
  // A host that answers nothing may stay deaf, so that cases can see what happens then.
  if (!fakeHost_.hasRules() || peer == nullptr) {
    return {};
  }
  return {[peer] { return peer->process().outputDescriptor(); }, [peer] { return peer->takeArrived(); }};
}

Problem StepRunner::fifoText(const Json& step) {
  return files_.awaitFifoText(pathIn(step, step["fifoText"]), step["text"].get<std::string>(), answerMeanwhile(step),
                              deadline(step));
}

Problem StepRunner::fifoEnd(const Json& step) {
  return files_.awaitFifoEnd(pathIn(step, step["fifoEnd"]), answerMeanwhile(step), deadline(step));
}

}  // namespace conformance
