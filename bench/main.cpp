// sandbox-bench: the project's figures in one table, each against its target, all from one run.
// A target that is missed is marked, never a failure; only a measurement that could not be made is (exit code 1).
#include "bench/rows.h"
#include "bench/unprivileged_home.h"

#include <signal.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <iterator>
#include <optional>

namespace stitchkit::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHelp =
    "Usage: sandbox-bench [--sidecar PROGRAM] [--quick] [--warm | --gateway | --client | --hogs]\n"
    "  --sidecar PROGRAM  what to measure (default: stitchkit-sandbox beside this program)\n"
    "  --quick            a tenth of the rounds and of the soak, to see that it works\n"
    "  --warm             the rows of commands and of launches that wait for them, and no others\n"
    "  --gateway          the rows of the gateway, and no others\n"
    "  --client           the rows of the JavaScript client, and no others\n"
    "  --hogs             the rows of sessions that take all they can get, and no others\n"
    "Started by root, everything runs as nobody. Files go below TMPDIR (default /tmp) and are removed.\n";

std::vector<Row> allRows(Setting& setting) {
  std::vector<Row> rows;
  const auto add = [&rows](std::vector<Row> more) {
    rows.insert(rows.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  };
  for (const auto& row : {residentRow, startRow, readRow, writeRow}) {
    rows.push_back(row(setting));
  }
  for (const auto& several : {warmRows, mebibyteRows, toolRows, gatewayRows, clientRows, hogRows}) {
    add(several(setting));
  }
  for (const auto& row : {pipelineRow, templateRow, soakRow}) {
    rows.push_back(row(setting));
  }
  return rows;
}

struct Options {
  fs::path sidecar = fs::read_symlink("/proc/self/exe").parent_path() / "stitchkit-sandbox";
  Effort effort;
  std::vector<Row> (*rows)(Setting&) = allRows;
};

/// nullopt when the arguments make no sense.
std::optional<Options> parseOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--quick") == 0) {
      options.effort = {30, 1000, 10000};
    } else if (std::strcmp(argv[i], "--warm") == 0) {
      options.rows = warmRows;
    } else if (std::strcmp(argv[i], "--gateway") == 0) {
      options.rows = gatewayRows;
    } else if (std::strcmp(argv[i], "--hogs") == 0) {
      options.rows = hogRows;
    } else if (std::strcmp(argv[i], "--client") == 0) {
      options.rows = clientRows;
    } else if (std::strcmp(argv[i], "--sidecar") == 0 && i + 1 < argc) {
      options.sidecar = argv[++i];
    } else {
      return std::nullopt;
    }
  }
  return options;
}

// What an ordinary user has to get at. The client's modules: its manifest makes them ECMAScript modules.
std::vector<fs::path> lent(const fs::path& sidecar) {
  const fs::path sources = SANDBOX_SOURCES;
  std::vector<fs::path> all{sidecar,
                            SANDBOX_HTTP_CLIENT,
                            SANDBOX_HOSTILE_CLIENT,
                            SANDBOX_RESOURCE_HOG,
                            sources / "client" / "package.json",
                            sources / "client" / "src"};
  for (const char* script :
       {"client_host.mjs", "guest_launcher.mjs", "node_launcher.mjs", "raw_lines.mjs", "timed_actions.mjs"}) {
    all.push_back(sources / "bench" / script);
  }
  return all;
}

void measure(const Options& options) {
  const UnprivilegedHome home(lent(options.sidecar));
  DirectLaunch direct(home.path() / "direct");
  const std::string node = findNode();
  std::optional<NodeScript> launcher;
  if (node.empty()) {
    std::fputs("no node of version 20 or later on the PATH: what takes one is not measured\n", stderr);
  } else {
    launcher.emplace(node, home.path() / "node_launcher.mjs", nlohmann::json(direct.profile()));
  }

  const fs::path program = home.path() / options.sidecar.filename();
  const fs::path state = home.path() / "state";
  Sidecar sidecar(program, state, Transport::kPipes);
  const std::string session = openSession(sidecar);
  Sidecar cold(program, home.path() / "cold-state", Transport::kPipes, {"--warm", "0"});
  const std::string coldSession = openSession(cold);
  Setting setting{options.effort,
                  program,
                  home.path(),
                  state,
                  sidecar,
                  session,
                  cold,
                  coldSession,
                  direct,
                  node,
                  launcher ? &*launcher : nullptr,
                  home.cgroups()};

  const std::vector<Row> rows = options.rows(setting);
  sidecar.end();
  cold.end();
  printTable(rows);
}

}  // namespace
}  // namespace stitchkit::bench

int main(int argc, char** argv) {
  if (std::any_of(argv, argv + argc, [](const char* argument) { return std::strcmp(argument, "--help") == 0; })) {
    std::fputs(stitchkit::bench::kHelp, stdout);
    return 0;
  }
  const auto options = stitchkit::bench::parseOptions(argc, argv);
  if (!options) {
    std::fputs(stitchkit::bench::kHelp, stderr);
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  try {
    stitchkit::bench::measure(*options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sandbox-bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
