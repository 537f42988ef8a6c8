// The seccomp filter of every guest, made by libseccomp: which calls of the kernel there are in a sandbox.
//
// Who installs it: bubblewrap (--seccomp), for the namespace's init as for what it launches. In init, too, because a
// guest can write its init's memory and have it run what it likes. The launch helper asks whether the filter is on
// (launch_protocol.h) before it says ready; where it is not, nothing is launched.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "rpc/base/error.h"

namespace stitchkit {

/// The filter for this machine's architectures as bubblewrap and the kernel take it: one struct sock_filter after the
/// other. Made at the first call (some milliseconds), the same for all guests, under every network policy. Any thread.
/// Errors: kUnavailable.
const Result<std::string>& systemCallFilter();

/// The architectures of x86-64 and of arm64, native and 32-bit, as libseccomp names them (SCMP_ARCH_*).
std::span<const std::uint32_t> x86Architectures();
std::span<const std::uint32_t> armArchitectures();

/// As systemCallFilter(), for any machine of the same byte order.
Result<std::string> makeSystemCallFilter(std::span<const std::uint32_t> architectures);

}  // namespace stitchkit
