#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "backend/stats.h"

namespace stitchkit {
namespace {

namespace json = boost::json;

json::object queue(const QueueState& state) {
  return {{"depth", state.depth}, {"highWater", state.highWater}, {"limit", state.limit}};
}

json::object commands(const CommandCounts& counts) {
  json::object ended;
  for (std::size_t i = 0; i < kCommandOutcomes; ++i) {
    ended[nameOfOutcome(i)] = counts.ended[i];
  }
  json::object launches;
  for (std::size_t i = 0; i < kCommandLaunches; ++i) {
    launches[nameOf(static_cast<CommandLaunch>(i))] = counts.launches[i];
  }
  return {{"live", counts.live},
          {"highWater", counts.mostLive.value()},
          {"started", counts.started},
          {"ended", std::move(ended)},
          {"launches", std::move(launches)},
          {"limited", {{"memory", counts.shortOfMemory}, {"processes", counts.shortOfProcesses}}}};
}

json::object requests(const RequestLog::Counts& counts) {
  json::object errors;
  for (const auto& [code, count] : counts.errors) {
    errors[code] = count;
  }
  return {{"ended", counts.ended}, {"errors", std::move(errors)}};
}

json::object gateway(const SidecarStats& stats) {
  json::object ended;
  for (std::size_t i = 0; i < kGatewayOutcomes; ++i) {
    ended[nameOf(static_cast<GatewayOutcome>(i))] = stats.gatewayOutcomes[i];
  }
  return {{"live", stats.liveGatewayRequests}, {"ended", std::move(ended)}};
}

json::array handles(const SidecarStats& stats) {
  json::array rows;
  for (const HandleStats& one : stats.handles) {
    json::object row{{"handle", one.handle},
                     {"session", one.session},
                     {"liveCommands", one.liveCommands},
                     {"startedCommands", one.startedCommands},
                     {"waitingLaunches", one.waitingLaunches},
                     {"liveGatewayRequests", one.liveGatewayRequests},
                     {"endedGatewayRequests", one.endedGatewayRequests},
                     {"memoryKills", one.limits.memoryKills},
                     {"refusedProcesses", one.limits.refusedProcesses}};
    if (one.memoryBytes) {
      row["memoryBytes"] = *one.memoryBytes;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

json::value encode(const SidecarStats& stats) {
  json::object queues;
  for (const auto& [name, state] : stats.queues) {
    queues[name] = queue(state);
  }
  const BackendCounts& counts = stats.backend;
  return {
      {"uptimeMs", static_cast<std::uint64_t>(stats.uptimeMs)},
      {"sessions",
       {{"live", stats.liveHandles},
        {"created", counts.created},
        {"attached", counts.attached},
        {"stopped", counts.stopped},
        {"deleted", counts.deleted}}},
      {"commands", commands(counts.commands)},
      {"warmLaunches",
       {{"waiting", stats.warm.waiting.depth},
        {"starting", stats.warm.starting},
        {"made", stats.warm.made},
        {"failed", stats.warm.failed}}},
      {"requests", requests(stats.requests)},
      {"gateway", gateway(stats)},
      {"memory", {{"residentBytes", stats.process.residentBytes}, {"peakBytes", stats.process.peakBytes}}},
      {"threads", stats.process.threads},
      {"openFiles", {{"open", stats.process.openFiles}, {"limit", stats.process.openFilesLimit}}},
      {"log", {{"written", stats.log.written}, {"dropped", stats.log.dropped}, {"suppressed", stats.log.suppressed}}},
      {"queues", std::move(queues)},
      {"handles", handles(stats)}};
}

}  // namespace stitchkit
