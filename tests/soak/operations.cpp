#include "tests/soak/operations.h"

#include <array>
#include <cstddef>

namespace stitchkit::soak {
namespace {

template <std::size_t count>
void doOne(Rig& rig, Room& room, const std::array<Operation, count>& operations) {
  while (!operations[rig.dice().below(count)](rig, room)) {
  }
}

}  // namespace

void beginAny(Rig& rig, Room& room) {
  static constexpr std::array kOperations = {
      writeText, writeText, writeText,  readText,  readText,    readText,        readMissing,  removeFile, runShell,
      runShell,  runShell,  runMissing, runWriter, runDeadline, runFlood,        runCancelled, toolWrite,  toolEdit,
      toolEdit,  toolRead,  toolSearch, toolGlob,  toolCommand, gatewayRequests, badParameters};
  doOne(rig, room, kOperations);
}

void doMeanwhile(Rig& rig, Room& room) {
  static constexpr std::array kOperations = {streamLines,  spawnAndStop, toolArtifact,   toolAsksHost, gatewayLeaves,
                                             prewarmFiles, killGuest,    killBubblewrap, attachTwice};
  doOne(rig, room, kOperations);
}

void doAlone(Rig& rig, Room& room) {
  static constexpr std::array kOperations = {stopAndReattach, deleteAndCreate, changePolicy, changePolicy,
                                             fillCommands,    killWaiting,     killWarden};
  doOne(rig, room, kOperations);
}

}  // namespace stitchkit::soak
