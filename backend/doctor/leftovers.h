// Removing what an examination made, however the doctor ends.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "backend/doctor/made_directories.h"
#include "rpc/base/unique_fd.h"

namespace stitchkit {

/// A child that waits until this process lets go of it or dies, also of SIGKILL, and then does one thing. No signal to
/// the process's group or terminal ends it.
class LastAct {
 public:
  LastAct() = default;
  ~LastAct() { perform(); }
  LastAct(const LastAct&) = delete;
  LastAct& operator=(const LastAct&) = delete;

  /// Once, before threads exist. Without a child (no process, no pipe) it is never done.
  void prepare(const std::function<void()>& act);
  /// Lets the child do it and waits for its end.
  void perform();
  [[nodiscard]] bool prepared() const noexcept { return child_ > 0; }

 private:
  UniqueFd pipe_;
  pid_t child_ = -1;
};

/// Looks at the places when it is made, before anything is there. At its end what is empty of that goes.
class Leftovers {
 public:
  explicit Leftovers(const std::vector<std::string>& places);
  ~Leftovers();
  Leftovers(const Leftovers&) = delete;
  Leftovers& operator=(const Leftovers&) = delete;

  /// From now on a child does it, with the rights that this process has now, when this process lets go of it or dies.
  /// The child does nothing else and follows no link. Without it the destructor does it.
  /// Before threads exist.
  void guard();
  /// Trials are about to be made below the state directory: another child, with the rights that this process has now,
  /// removes the trial directory of a doctor that was ended. Before threads exist.
  void guardTrials(const std::string& stateDirectory);

 private:
  void remove() const;

  std::vector<MadeDirectories> places_;
  LastAct guard_;
  LastAct trials_;  // holds guard_'s pipe as well, so that directories are empty when that one comes to them
};

}  // namespace stitchkit
