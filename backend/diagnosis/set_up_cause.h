// From how a launch failed to its cause: pure functions of what bubblewrap said and what the machine says.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "backend/diagnosis/cause.h"
#include "backend/diagnosis/machine_facts.h"
#include "backend/diagnosis/program_facts.h"

namespace stitchkit {

/// A program, a thread or a pipe could not be had: its errno.
Cause causeOfSpawn(int error);
/// The same of a program that was looked at: where it is there and yet not found, its interpreter or loader is missing,
/// and it is something else than bubblewrap.
Cause causeOfSpawn(int error, const ProgramFacts& program);

/// What a failed operation on the state directory shows: an errno. nullopt when it shows nothing.
std::optional<Cause> causeOfStorage(int error);

/// Why a state directory, or what lies in it, could not be made, opened or written: `error` is what that gave. Looks at
/// the folders of `path`. nullopt when that shows nothing about the directory.
std::optional<Cause> causeOfStateDirectory(const std::string& path, int error);

/// The folder on the way to `path` that this user may not search; "" for none.
std::string firstUnsearchable(const std::string& path);

/// The program ran and ended before the sandbox was ready. `words`: what it said on stdout and stderr. kSetUpFailed
/// when nothing is known.
Cause causeOfSetUp(std::string_view words, const MachineFacts& machine, const ProgramFacts& program);

/// What of the machine refuses a user namespace (EPERM or EACCES), when that is known.
Cause causeOfRefusal(const MachineFacts& machine);

/// What the machine forbids to whoever asks, as far as its files say.
std::optional<Cause> forbiddenNamespaces(const MachineFacts& machine);

}  // namespace stitchkit
