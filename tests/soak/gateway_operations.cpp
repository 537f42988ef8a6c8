#include <stdexcept>

#include "tests/soak/operations.h"

namespace stitchkit::soak {
namespace {

constexpr const char* kNobody = "127.0.0.1:1";  // nothing listens there

Json allowList(const Rig& rig) {
  const Json headers{{"authorization", Soak::kSecret}};
  return {{"allow",
           {{{"origin", rig.soak().upstream.origin()}, {"headers", headers}, {"pathPrefixes", {"/"}}},
            {{"origin", std::string("http://") + kNobody}}}}};
}

}  // namespace

bool gatewayRequests(Rig& rig, Room& room) {
  if (room.commands >= 5) {
    return false;
  }
  struct Kind {
    std::string host;
    std::string path;
    int status;
  };
  const std::string good = rig.soak().upstream.host();
  const std::vector<Kind> kinds{{good, "/", 200},           {good, "/echo", 200}, {"denied.example", "/", 403},
                                {good, "//elsewhere", 403}, {kNobody, "/", 502},  {good, "/cut", 502}};
  const Kind& kind = rig.dice().oneOf(kinds);
  const int status = room.policy.is_object() ? kind.status : 403;
  const std::size_t count = status == 502 ? 1 : 1 + rig.dice().below(3);
  std::string expected;
  for (std::size_t i = 0; i < count; ++i) {
    expected += "status=" + std::to_string(status) + "\n";
  }
  rig.beginCommand(
      room, "gateway " + std::to_string(status), "session.run",
      room.session->commandParams({room.gatewayClient, "get", kind.host, kind.path, std::to_string(count)}),
      [expected, status, &rig](const Json& answer) {
        if (resultOf(answer).at("stdout") != expected) {
          wrong("not " + expected, answer);
        }
        if (status == 502) {
          // Of requests whose guest has left before there may be some, or none: that is a race.
          Json failure;
          do {
            failure = rig.sidecar().notification("gateway.error").at("params");
          } while (failure.at("code") == "CANCELLED");
          if (failure.dump().find(Soak::kSecret) != std::string::npos) {
            wrong("the injected value in gateway.error", failure);
          }
        }
      });
  return true;
}

bool gatewayLeaves(Rig& rig, Room& room) {
  if (!room.policy.is_object()) {
    return false;
  }
  Json params = room.session->commandParams({room.gatewayClient, "pending", rig.soak().upstream.host(), "3", "/slow"},
                                            {{"timeoutMs", 600000}});
  params["stream"] = true;
  const Json process = rig.sidecar().call("session.spawn", params).at("process");
  if (rig.sidecar().outputBytes().empty()) {
    throw std::runtime_error("gateway_peer pending: says nothing");
  }
  rig.sidecar().call("process.stop", {{"process", process}});
  rig.sidecar().notification("process.exit");
  rig.soak().did("gateway, left");
  return true;
}

bool changePolicy(Rig& rig, Room& room) {
  const std::size_t kind = rig.dice().below(4);
  room.policy = kind == 0 ? Json("deny-all") : kind == 1 ? Json("allow-all") : allowList(rig);
  rig.sidecar().call("session.setNetworkPolicy", {{"handle", room.handle()}, {"network", room.policy}});
  rig.soak().did("policy");
  return true;
}

}  // namespace stitchkit::soak
