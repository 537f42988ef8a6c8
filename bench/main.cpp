// sandbox-bench: the project's figures in one table, each against its target, all from one run.
// A target that is missed is marked, never a failure; only a measurement that could not be made is (exit code 1).
#include "bench/rows.h"
#include "bench/unprivileged_home.h"

#include <signal.h>

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
    "Usage: sandbox-bench [--sidecar PROGRAM] [--quick] [--gateway]\n"
    "  --sidecar PROGRAM  what to measure (default: stitchkit-sandbox beside this program)\n"
    "  --quick            a tenth of the rounds and of the soak, to see that it works\n"
    "  --gateway          the rows of the gateway, and no others\n"
    "Started by root, everything runs as nobody. Files go below TMPDIR (default /tmp) and are removed.\n";

struct Options {
  fs::path sidecar = fs::read_symlink("/proc/self/exe").parent_path() / "stitchkit-sandbox";
  Effort effort;
  bool onlyGateway = false;
};

/// nullopt when the arguments make no sense.
std::optional<Options> parseOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--quick") == 0) {
      options.effort = {30, 1000, 10000};
    } else if (std::strcmp(argv[i], "--gateway") == 0) {
      options.onlyGateway = true;
    } else if (std::strcmp(argv[i], "--sidecar") == 0 && i + 1 < argc) {
      options.sidecar = argv[++i];
    } else {
      return std::nullopt;
    }
  }
  return options;
}

std::vector<Row> allRows(Setting& setting) {
  std::vector<Row> rows;
  const auto add = [&rows](std::vector<Row> more) {
    rows.insert(rows.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  };
  for (const auto& row : {residentRow, startRow, runRow, readRow, writeRow}) {
    rows.push_back(row(setting));
  }
  for (const auto& several : {mebibyteRows, toolRows, gatewayRows}) {
    add(several(setting));
  }
  for (const auto& row : {pipelineRow, templateRow, soakRow}) {
    rows.push_back(row(setting));
  }
  return rows;
}

void measure(const Options& options) {
  const fs::path script = SANDBOX_NODE_LAUNCHER;
  const UnprivilegedHome home({options.sidecar, script, SANDBOX_HTTP_CLIENT, SANDBOX_HOSTILE_CLIENT});
  DirectLaunch direct(home.path() / "direct");
  const std::unique_ptr<NodeLauncher> node = NodeLauncher::find(home.path() / script.filename(), direct.profile());
  if (node == nullptr) {
    std::fputs("no node on the PATH: the column of the Node launcher stays empty\n", stderr);
  }

  const fs::path program = home.path() / options.sidecar.filename();
  const fs::path state = home.path() / "state";
  Sidecar sidecar(program, state, Transport::kPipes);
  const std::string session = openSession(sidecar);
  Setting setting{options.effort, program, home.path(), state, sidecar, session, direct, node.get()};

  const std::vector<Row> rows = options.onlyGateway ? gatewayRows(setting) : allRows(setting);
  sidecar.end();
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
