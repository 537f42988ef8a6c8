// The long row: what a sidecar holds after much work, against what it held before.
#include "bench/measure.h"
#include "bench/process_facts.h"
#include "bench/rows.h"
#include "rpc/base/base64.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <deque>
#include <functional>
#include <thread>

namespace stitchkit::bench {

using nlohmann::json;

namespace {

// Of commands and of file operations alike. The answers of so many 4 KiB reads fit a pipe, so that the sidecar is never
// waiting for us to read while we wait for it to read.
constexpr int kAtOnce = 8;
constexpr int kFiles = 512;

// `total` requests, at most kAtOnce of them unanswered at a time. `lineOf` gets the request's number, its id.
void pipeline(Sidecar& sidecar, int total, const std::function<std::string(int)>& lineOf) {
  int sent = 0;
  for (int answered = 0; answered < total; ++answered) {
    for (; sent < total && sent - answered < kAtOnce; ++sent) {
      sidecar.channel().send(lineOf(sent));
    }
    expectResult(sidecar.channel().receive());
  }
}

void work(Sidecar& sidecar, const std::string& session, int commands, int fileOperations) {
  const json run{{"handle", session}, {"command", {{"executable", "/usr/bin/true"}}}};
  pipeline(sidecar, commands, [&](int id) { return requestLine("session.run", run, id); });

  // Every file is there before the first read; then even numbers write one and odd ones read it.
  const std::string base64 = encodeBase64(std::string(4096, 'x'));
  const auto pathOf = [](int number) { return "soak/" + std::to_string(number / 2 % kFiles); };
  for (int file = 0; file < kFiles; ++file) {
    sidecar.call("session.writeBinaryFile", {{"handle", session}, {"path", pathOf(file * 2)}, {"base64", base64}});
  }
  pipeline(sidecar, fileOperations, [&](int id) {
    const std::string path = pathOf(id);
    return id % 2 == 0
               ? requestLine("session.writeBinaryFile", {{"handle", session}, {"path", path}, {"base64", base64}}, id)
               : requestLine("session.readBinaryFile", {{"handle", session}, {"path", path}}, id);
  });
}

bool countsAreBack(const ProcessFacts& now, const ProcessFacts& start) {
  return now.descriptors <= start.descriptors && now.threads <= start.threads && now.zombies <= start.zombies;
}

// An answer comes before the last of its clean-up; nothing tells when that is done, so look until it is, for 2 s.
ProcessFacts settledFacts(pid_t pid, const ProcessFacts& start) {
  ProcessFacts facts = factsOf(pid);
  for (int tries = 0; tries < 200 && !countsAreBack(facts, start); ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    facts = factsOf(pid);
  }
  return facts;
}

std::string withSign(int number) {
  return (number >= 0 ? "+" : "") + std::to_string(number);
}

}  // namespace

Row soakRow(Setting& setting) {
  const Effort& effort = setting.effort;
  Sidecar sidecar(setting.program, setting.home / "soak-state", Transport::kPipes);
  const std::string session = openSession(sidecar);
  const ProcessFacts idle = factsOf(sidecar.pid());
  work(sidecar, session, effort.soakCommands / 50, effort.soakFileOperations / 50);
  const ProcessFacts start = settledFacts(sidecar.pid(), idle);

  const double seconds = timed([&] { work(sidecar, session, effort.soakCommands, effort.soakFileOperations); });
  const ProcessFacts end = settledFacts(sidecar.pid(), start);
  sidecar.end();

  const double growth = static_cast<double>(end.residentBytes - start.residentBytes) / 1048576;
  return {std::to_string(effort.soakCommands) + " commands, " + std::to_string(effort.soakFileOperations) +
              " file operations",
          formatNumber(seconds, 0, "s"),
          "after the first 2 %",
          "fds " + withSign(end.descriptors - start.descriptors) + ", threads " +
              withSign(end.threads - start.threads) + ", zombies " + std::to_string(end.zombies) + ", resident " +
              formatNumber(growth, 1, "MiB"),
          "0, 0, 0, <= 2 MiB",
          countsAreBack(end, start) && end.zombies == 0 && growth <= 2,
          ""};
}

}  // namespace stitchkit::bench
