// Reading what the programs of tests/programs say, and running them where nothing protects.
#pragma once

#include "tests/support/session.h"

#include <map>
#include <ostream>
#include <set>
#include <string>
#include <vector>

namespace stitchkit::testing {

/// Name of the try to "ok" or an errno's name.
using Attempts = std::map<std::string, std::string>;
Attempts attemptsOf(const std::string& output);
/// The names of those that came off.
std::set<std::string> succeeded(const Attempts& attempts);

/// How a sidecar may be run: the two start modes, and root that is told to stay root.
struct Footing {
  StartAs startAs;
  bool allowRoot;
  friend std::ostream& operator<<(std::ostream& out, const Footing& footing);
};
std::vector<Footing> footings();
SidecarOptions optionsFor(const Footing& footing);

/// A bwrap without the protections: /usr read-only, /proc, /dev, /tmp, the whole environment and every descriptor
/// passed on. `more` goes before the program.
ProgramResult weakSandbox(std::vector<std::string> more, std::vector<std::string> program,
                          std::optional<uid_t> user = kOrdinaryUid,
                          std::vector<std::string> environment = {"PATH=/usr/bin:/bin"});
/// The beginning of such a command line.
std::vector<std::string> weakSandboxCommand();

/// The user to run controls as: the ordinary one when root, else oneself.
std::optional<uid_t> ordinaryUser();

/// No descendants but those in `known`, soon.
bool onlyDescendants(const std::vector<pid_t>& known, Milliseconds within = Milliseconds(15000));

}  // namespace stitchkit::testing
