// Runs one case against one command line.
#pragma once

#include <chrono>
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

/// nullopt when the case passed. Thread-safe: each call has its own directory and processes.
///
/// After the last step each implementation that is still there has its input closed; it must then exit with 0, and
/// leave no message that no step has asked for.
std::optional<Failure> runCase(const Case& testCase, const Contract& contract, const Settings& settings);

}  // namespace conformance
