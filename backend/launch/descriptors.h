// Descriptors a launch is made of. All are close-on-exec from their birth, so that no other launch inherits them.
#pragma once

#include <string_view>

#include "rpc/base/error.h"
#include "rpc/base/unique_fd.h"

namespace stitchkit {

struct Pipe {
  UniqueFd readEnd;
  UniqueFd writeEnd;
};

struct SocketPair {
  UniqueFd ours;
  UniqueFd theirs;
};

/// kUnavailable: no launch is possible for want of a descriptor, a process or memory, with the cause as reason where it
/// is known; `operation` and the errno stay private.
Error launchResourceError(std::string_view operation, int errnoNumber);

/// Both ends block. Errors: kUnavailable.
Result<Pipe> makePipe();

/// Unix, SOCK_SEQPACKET. Both ends block. Errors: kUnavailable.
Result<SocketPair> makeSocketPair();

/// /dev/null for reading and writing. Errors: kUnavailable.
Result<UniqueFd> openNull();

/// A memory file that holds `bytes` and cannot change any more, its offset at the start. Errors: kUnavailable.
Result<UniqueFd> sealedMemory(std::string_view bytes);

}  // namespace stitchkit
