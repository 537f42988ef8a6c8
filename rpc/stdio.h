// The process's stdin and stdout as descriptors of our own: pollable where the kernel allows it, without changing the
// flags of what is shared with the host's other children.
#pragma once

#include "rpc/base/unique_fd.h"

namespace stitchkit {

struct StdioStream {
  UniqueFd fd;
  bool pollable = false;  ///< false for regular files and /dev/null: always ready, never block for long
};

struct Stdio {
  StdioStream input;
  StdioStream output;
};

/// Takes stdin and stdout over, once, at start and before privileges are given up. Afterwards descriptor 0 is /dev/null
/// and descriptor 1 is stderr, so that nothing but the protocol can reach stdout.
///
/// A pipe or terminal is opened anew through /proc/self/fd, which gives a description of its own that can be
/// non-blocking alone. A socket cannot be opened anew: it becomes non-blocking itself (its other end does not).
Stdio takeStdio();

}  // namespace stitchkit
