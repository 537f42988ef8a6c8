#include "codingtools/durability.h"

#include "codingtools/contained_open.h"

#include <unistd.h>

#include <cerrno>

namespace stitchkit {

int Durability::settleFile(int file) const {
  return level_ == Level::kProcess || ::fsync(file) == 0 ? 0 : errno;
}

// The whole file system at once: a tree of many files takes as many turns of the disk by fsync.
int Durability::settleTree(int descriptor) const {
  return level_ == Level::kProcess || ::syncfs(descriptor) == 0 ? 0 : errno;
}

int Durability::settleEntries(int directory, int beside) const {
  if (level_ != Level::kDirectory) {
    return 0;
  }
  const OpenOutcome opened = openSegment(directory, ".", kReadDirectory);
  if (opened.fd) {
    return ::fsync(opened.fd.get()) == 0 ? 0 : errno;
  }
  return opened.error == EACCES ? settleTree(beside) : opened.error;
}

}  // namespace stitchkit
