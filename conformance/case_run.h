// Runs cases against one command line.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "conformance/case_file.h"
#include "conformance/contract.h"

namespace conformance {

struct Settings {
  std::vector<std::string> command;  ///< `{state}` in an argument stands for the case's state directory
  std::chrono::milliseconds stepTimeout{20000};
};

struct Failure {
  std::string step;     ///< number and kind; "end" for the check after the last step
  std::string sent;     ///< the step as it was carried out
  std::string problem;  ///< what was expected and what came
  std::string unread;   ///< messages that nothing had asked for
  std::string errors;   ///< the end of the implementation's stderr
};

class Scene;

/// One case after another, each in a directory and a process of its own, but for those with `oneProcess`: they share
/// one, and each leaves nothing behind in it. A runner belongs to one thread.
class CaseRunner {
 public:
  CaseRunner(const Contract& contract, const Settings& settings);
  ~CaseRunner();
  CaseRunner(const CaseRunner&) = delete;
  CaseRunner& operator=(const CaseRunner&) = delete;

  /// nullopt when the case passed.
  ///
  /// After the last step each implementation that is still there has its input closed; it must then exit with 0, and
  /// leave no message that no step has asked for. A shared one has the case's sessions deleted instead, and ends with
  /// finish() or after a failure.
  std::optional<Failure> run(const Case& testCase);
  /// Ends the shared implementation in the same way, if there is one.
  std::optional<Failure> finish();

 private:
  std::optional<Failure> runShared(const Case& testCase);

  const Contract& contract_;
  const Settings& settings_;
  std::unique_ptr<Scene> shared_;
};

}  // namespace conformance
