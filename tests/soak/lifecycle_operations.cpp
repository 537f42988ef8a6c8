#include <stdexcept>

#include "tests/soak/operations.h"

namespace stitchkit::soak {

bool stopAndReattach(Rig& rig, Room& room) {
  testing::Sidecar& sidecar = rig.sidecar();
  sidecar.call("session.spawn", room.session->commandParams({"/bin/sleep", rig.marker()}, {{"timeoutMs", 600000}}));
  const std::string old = room.handle();
  sidecar.call("handle.stop", {{"handle", old}});
  if (sidecar.callError("handle.probe", {{"handle", old}}).at("data").at("code") != "SANDBOX_STOPPED") {
    throw std::runtime_error("a stopped handle is not stopped");
  }
  room.session = std::make_unique<testing::Session>(sidecar, room.policy, room.session->state());
  rig.openTools(room);
  rig.verify(room);
  rig.soak().did("stop and reattach");
  return true;
}

bool deleteAndCreate(Rig& rig, Room& room) {
  rig.deleteRoom(room);
  const Json error = rig.sidecar().callError("backend.create", {{"template", room.session->state().at("templateKey")},
                                                                {"network", "deny-all"},
                                                                {"state", room.session->state()}});
  if (error.at("data").at("code") != "SANDBOX_STATE_MISMATCH") {
    wrong("a deleted session", error);
  }
  room = rig.openRoom();
  return true;
}

bool attachTwice(Rig& rig, Room& room) {
  const Json error = rig.sidecar().callError("backend.create", {{"template", room.session->state().at("templateKey")},
                                                                {"network", "deny-all"},
                                                                {"state", room.session->state()}});
  if (error.at("data").at("code") != "SANDBOX_BUSY") {
    wrong("attached twice", error);
  }
  rig.soak().did("attach twice");
  return true;
}

bool prewarmFiles(Rig& rig, Room&) {
  const Json files{{"a/one.txt", "one"}, {"two.txt", std::string(10'000, '2')}};
  const Json made = rig.sidecar().call("backend.prewarm", {{"template", "soak"}, {"files", files}});
  const Json created =
      rig.sidecar().call("backend.create", {{"template", made.at("templateKey")}, {"network", "deny-all"}});
  const Json read =
      rig.sidecar().call("session.readTextFile", {{"handle", created.at("handle")}, {"path", "a/one.txt"}});
  if (read.at("text") != "one") {
    wrong("a template's file", read);
  }
  rig.sidecar().call("handle.delete", {{"handle", created.at("handle")}});
  rig.soak().did("template");
  return true;
}

}  // namespace stitchkit::soak
