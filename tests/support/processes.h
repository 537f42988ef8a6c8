// What /proc says about processes of this machine, and waiting for it to say something else.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace stitchkit::testing {

using Milliseconds = std::chrono::milliseconds;

/// A moment of one process.
struct ProcessCounters {
  long residentKib = 0;
  long peakKib = 0;  ///< the most that was ever resident
  long threads = 0;
  long descriptors = 0;
  long zombies = 0;  ///< children that nobody has waited for
};
ProcessCounters countersOf(pid_t pid);

/// The value of a line of /proc/<pid>/status, such as "Uid"; "" when there is none.
std::string statusLine(pid_t pid, std::string_view name);

/// Whether its memory says nothing: sanitizers keep freed memory, and reserve terabytes of address space.
bool isSanitized(pid_t pid);

/// Living processes (no zombies) whose command line holds `marker`, other than this one.
std::vector<pid_t> guestsAlive(std::string_view marker);

/// Living processes below `ancestor`, any number of generations. With becomeSubreaper() in effect the descendants of a
/// process that has died are found below this one. A sidecar's warden is its own and does not count.
std::vector<pid_t> descendantsOf(pid_t ancestor);

/// The processes of a sandbox that waits for a command: its helper becomes the command, with the number that it has.
struct WaitingLaunch {
  pid_t bubblewrap = 0;
  pid_t init = 0;  ///< pid 1 in there
  pid_t helper = 0;

  [[nodiscard]] std::vector<pid_t> processes() const { return {bubblewrap, init, helper}; }
  friend bool operator==(const WaitingLaunch&, const WaitingLaunch&) = default;
};

/// Those below a sidecar. While a command starts, its own launch is one for a moment, whether or not it has waited.
std::vector<WaitingLaunch> waitingLaunchesOf(pid_t sidecar);

/// Living processes below the sidecar, those of launches that wait left out: of commands, and for a moment of launches
/// that are being set up.
std::vector<pid_t> commandsOf(pid_t sidecar);

/// The sidecar's wardens: one from its first use on.
std::vector<pid_t> wardensOf(pid_t sidecar);

/// Orphans of children of this process become its own children from now on, so that nothing they leave behind can
/// hide. Called by tests/support/main.cpp.
void becomeSubreaper();

/// Waits for those zombies among this process's children that were orphans. `known`: children of the test's own,
/// which are left alone.
void reapOrphans(const std::vector<pid_t>& known);

/// Asks `condition` until it holds or the time is over; says which.
bool eventually(const std::function<bool()>& condition, Milliseconds within = Milliseconds(15000));

/// Kills those with `marker` on their command line until there are none; says whether that came. Again and again: one
/// may have been about to fork, and for a moment of its exec a process has no command line.
bool killAll(std::string_view marker);

/// No living process with `marker` on its command line, soon.
bool noGuestSoon(std::string_view marker, Milliseconds within = Milliseconds(15000));

}  // namespace stitchkit::testing
