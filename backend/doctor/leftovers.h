// Removing the directories that an examination made where there were none.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "backend/doctor/made_directories.h"
#include "rpc/base/unique_fd.h"

namespace stitchkit {

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

 private:
  void remove() const;

  std::vector<MadeDirectories> places_;
  UniqueFd pipe_;
  pid_t child_ = -1;
};

}  // namespace stitchkit
