// conformance-runner: options, threads, the summary.
#include <fnmatch.h>

#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <thread>

#include "conformance/case_run.h"
#include "conformance/interrupt.h"
#include "conformance/report.h"

namespace conformance {
namespace {

constexpr const char* kUsage =
    "usage: conformance-runner --cases DIR [options] -- COMMAND [ARGUMENT...]\n"
    "\n"
    "Runs the cases below DIR against the implementation that COMMAND starts, each case in a process of its own\n"
    "(but cases that say oneProcess share one).\n"
    "{state} in an argument stands for a fresh state directory.\n"
    "\n"
    "  --filter TEXT       only cases whose FILE: NAME holds TEXT, or matches it as a shell pattern; may come twice\n"
    "  --schema FILE       the OpenRPC document (default DIR/../../schema/openrpc.json)\n"
    "  --case-schema FILE  the schema of case files (default DIR/../case.schema.json)\n"
    "  --jobs N            cases at once (default 2)\n"
    "  --timeout-ms N      the most that a step may take (default 20000)\n"
    "  --list              name the cases and end\n"
    "  --verbose           name the cases that passed too\n"
    "\n"
    "Exit code: 0 when every case passed, 1 when one failed or none ran, 2 for a wrong call or wrong cases.\n";

struct Options {
  std::filesystem::path cases;
  std::filesystem::path schema;
  std::filesystem::path caseSchema;
  std::vector<std::string> filters;
  unsigned jobs = 2;
  bool list = false;
  bool verbose = false;
  Settings settings;
};

bool parseNumber(const std::string& text, unsigned& number) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() && number > 0;
}

/// An option with a value. False when it is unknown or its value is wrong.
bool takeOption(Options& options, const std::string& name, const std::string& value) {
  unsigned number = 0;
  if (name == "--cases") {
    options.cases = value;
  } else if (name == "--schema") {
    options.schema = value;
  } else if (name == "--case-schema") {
    options.caseSchema = value;
  } else if (name == "--filter") {
    options.filters.push_back(value);
  } else if (name == "--jobs") {
    return parseNumber(value, options.jobs);
  } else if (name == "--timeout-ms") {
    const bool right = parseNumber(value, number);
    options.settings.stepTimeout = std::chrono::milliseconds(number);
    return right;
  } else {
    return false;
  }
  return true;
}

std::optional<Options> parseOptions(const std::vector<std::string>& arguments) {
  Options options;
  std::size_t i = 0;
  for (; i < arguments.size() && arguments[i] != "--"; ++i) {
    if (arguments[i] == "--list") {
      options.list = true;
    } else if (arguments[i] == "--verbose") {
      options.verbose = true;
    } else if (i + 1 == arguments.size() || !takeOption(options, arguments[i], arguments[i + 1])) {
      return std::nullopt;
    } else {
      ++i;
    }
  }
  for (++i; i < arguments.size(); ++i) {
    options.settings.command.push_back(arguments[i]);
  }
  if (options.cases.empty() || (options.settings.command.empty() && !options.list)) {
    return std::nullopt;
  }
  if (options.schema.empty()) {
    options.schema = options.cases / "../../schema/openrpc.json";
  }
  if (options.caseSchema.empty()) {
    options.caseSchema = options.cases / "../case.schema.json";
  }
  return options;
}

std::vector<Case> select(std::vector<Case> cases, const std::vector<std::string>& filters) {
  std::erase_if(cases, [&](const Case& candidate) {
    const std::string title = candidate.file + ": " + candidate.name;
    return !filters.empty() && std::none_of(filters.begin(), filters.end(), [&](const std::string& filter) {
      return title.find(filter) != std::string::npos || ::fnmatch(filter.c_str(), title.c_str(), 0) == 0;
    });
  });
  return cases;
}

/// Runs all of them on so many threads, and returns how many failed.
std::size_t runAll(const std::vector<Case>& cases, const Contract& contract, const Options& options) {
  std::atomic<std::size_t> next = 0;
  std::size_t failed = 0;
  std::mutex mutex;
  const auto report = [&](const Case& tried, const std::optional<Failure>& failure, std::chrono::milliseconds took) {
    const std::scoped_lock lock(mutex);
    if (failure) {
      ++failed;
      printFailure(std::cout, tried, *failure);
    } else if (options.verbose) {
      std::cout << "passed " << tried.file << ": " << tried.name << " (" << took.count() << " ms)\n";
    }
    std::cout.flush();
  };
  const auto work = [&] {
    CaseRunner runner(contract, options.settings);
    const Case* lastShared = nullptr;
    for (std::size_t i = next++; i < cases.size() && !interrupted(); i = next++) {
      const auto begin = std::chrono::steady_clock::now();
      const auto failure = runner.run(cases[i]);
      const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
      if (interrupted()) {
        return;
      }
      lastShared = cases[i].oneProcess && !failure ? &cases[i] : lastShared;
      report(cases[i], failure, took);
    }
    // Which of its cases spoilt the end is unknown; the last one is named.
    const auto failure = interrupted() ? std::nullopt : runner.finish();
    if (failure && lastShared != nullptr) {
      report(*lastShared, failure, {});
    }
  };
  std::vector<std::jthread> threads;
  for (unsigned i = 1; i < options.jobs; ++i) {
    threads.emplace_back(work);
  }
  work();
  threads.clear();
  return failed;
}

int fail(const std::string& problem) {
  std::cerr << "conformance-runner: " << problem << "\n";
  return 2;
}

int main(const std::vector<std::string>& arguments) {
  const auto options = parseOptions(arguments);
  if (!options) {
    std::cerr << kUsage;
    return 2;
  }
  std::string problem;
  const auto loaded = loadCases(options->cases, options->caseSchema, problem);
  if (!loaded) {
    return fail(problem);
  }
  const auto cases = select(*loaded, options->filters);
  if (options->list) {
    for (const auto& one : cases) {
      std::cout << one.file << ": " << one.name << "\n";
    }
    return 0;
  }
  const auto document = readJsonFile(options->schema, problem);
  const auto contract = document ? Contract::compile(*document, problem) : nullptr;
  if (!contract) {
    return fail(options->schema.string() + ": " + problem);
  }
  if (!installInterruptHandler()) {
    return fail("no signal handler can be installed");
  }
  const std::size_t failed = runAll(cases, *contract, *options);
  if (interrupted()) {
    return fail("interrupted");
  }
  std::cout << cases.size() - failed << " passed, " << failed << " failed\n";
  return failed > 0 || cases.empty() ? 1 : 0;
}

}  // namespace
}  // namespace conformance

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  ::setenv("CONFORMANCE_SECRET", "conformance-s3cret", 1);  // cases look for it where guests can see
  return conformance::main(std::vector<std::string>(argv + 1, argv + argc));
}
