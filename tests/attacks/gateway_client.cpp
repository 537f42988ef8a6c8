#include "tests/attacks/gateway_client.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

namespace stitchkit::testing {

Json allowOnly(const Upstream& upstream, Json more) {
  more["origin"] = upstream.origin();
  return {{"allow", {std::move(more)}}};
}

GatewayGuest::GatewayGuest(Sidecar& sidecar, const Upstream& upstream, Json policy)
    : sidecar_(sidecar),
      host_(upstream.host()),
      session_(sidecar, std::move(policy)),
      program_(session_.install("gateway_peer")) {}

GatewayGuest::GatewayGuest(Sidecar& sidecar, const Upstream& upstream, Json policy, Json state)
    : sidecar_(sidecar),
      host_(upstream.host()),
      session_(sidecar, std::move(policy), std::move(state)),
      program_(session_.install("gateway_peer")) {}

std::vector<std::string> GatewayGuest::argv(const std::string& mode, const std::vector<std::string>& more) const {
  std::vector<std::string> all{program_, mode, host_};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::string GatewayGuest::run(const std::string& mode, const std::vector<std::string>& more, Milliseconds within) {
  return session_.run(argv(mode, more), {{"timeoutMs", within.count()}}, within + Milliseconds(10000)).out;
}

Json GatewayGuest::spawn(const std::string& mode, const std::vector<std::string>& more) {
  Json params = session_.commandParams(argv(mode, more), {{"timeoutMs", 120000}});
  params["stream"] = true;
  return sidecar_.call("session.spawn", params).at("process");
}

std::string GatewayGuest::ask(const std::string& path) {
  const std::string said = run("get", {path, "1"});
  return said.rfind("status=", 0) == 0 ? said.substr(7, said.find('\n') - 7) : said;
}

long linesThatAre(const std::string& output, const std::string& line) {
  std::istringstream lines(output);
  long count = 0;
  for (std::string one; std::getline(lines, one);) {
    count += one == line ? 1 : 0;
  }
  return count;
}

MemoryGrowth::MemoryGrowth(const Sidecar& sidecar) : pid_(sidecar.pid()), before_(0) {
  // Root may have the kernel forget the peak of the start; else only what exceeds that counts.
  const UniqueFd refs(::open(("/proc/" + std::to_string(pid_) + "/clear_refs").c_str(), O_WRONLY | O_CLOEXEC));
  if (refs) {
    [[maybe_unused]] const ssize_t written = ::write(refs.get(), "5", 1);
  }
  const ProcessCounters now = countersOf(pid_);
  before_ = std::max(now.residentKib, now.peakKib);
}

long MemoryGrowth::kib() const {
  return isSanitized(pid_) ? 0 : countersOf(pid_).peakKib - before_;
}

}  // namespace stitchkit::testing
