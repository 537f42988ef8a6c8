// What a host does, each with a check of what comes of it.
#pragma once

#include "tests/soak/rig.h"

namespace stitchkit::soak {

/// Sends requests that run beside others.
void beginAny(Rig& rig, Room& room);
/// Goes through several steps while requests are under way.
void doMeanwhile(Rig& rig, Room& room);
/// What needs a room without commands: the life of handles, a change of policy, kills.
void doAlone(Rig& rig, Room& room);

/// One operation of a kind; false when it has nothing to do in this room now.
using Operation = bool (*)(Rig& rig, Room& room);

// file_operations.cpp
/// A file that no request under way uses, by its path; one that is there when `existing`. "" for none.
std::string claim(Rig& rig, Room& room, bool existing);
bool writeText(Rig& rig, Room& room);
bool readText(Rig& rig, Room& room);
bool readMissing(Rig& rig, Room& room);
bool removeFile(Rig& rig, Room& room);
bool badParameters(Rig& rig, Room& room);

// command_operations.cpp
bool runShell(Rig& rig, Room& room);
bool runMissing(Rig& rig, Room& room);
bool runWriter(Rig& rig, Room& room);
bool runDeadline(Rig& rig, Room& room);
bool runFlood(Rig& rig, Room& room);
bool runCancelled(Rig& rig, Room& room);
bool streamLines(Rig& rig, Room& room);
bool spawnAndStop(Rig& rig, Room& room);

// tool_operations.cpp
bool toolWrite(Rig& rig, Room& room);
bool toolEdit(Rig& rig, Room& room);
bool toolRead(Rig& rig, Room& room);
bool toolSearch(Rig& rig, Room& room);
bool toolGlob(Rig& rig, Room& room);
bool toolCommand(Rig& rig, Room& room);
bool toolArtifact(Rig& rig, Room& room);
bool toolAsksHost(Rig& rig, Room& room);
/// So many tools that wait for the host at the same time.
void askAtOnce(Rig& rig, Room& room, int count);

// gateway_operations.cpp
bool gatewayRequests(Rig& rig, Room& room);
bool gatewayLeaves(Rig& rig, Room& room);
bool changePolicy(Rig& rig, Room& room);

// lifecycle_operations.cpp
bool stopAndReattach(Rig& rig, Room& room);
bool deleteAndCreate(Rig& rig, Room& room);
bool attachTwice(Rig& rig, Room& room);
bool prewarmFiles(Rig& rig, Room& room);
bool fillCommands(Rig& rig, Room& room);

// kill_operations.cpp
bool killGuest(Rig& rig, Room& room);
bool killBubblewrap(Rig& rig, Room& room);
bool killWaiting(Rig& rig, Room& room);
bool killWarden(Rig& rig, Room& room);

}  // namespace stitchkit::soak
