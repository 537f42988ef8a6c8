// Ctrl-C and SIGTERM: waits end at once, so that every case removes what it made.
#pragma once

namespace conformance {

/// Once, before threads. False when the system refuses.
bool installInterruptHandler();

/// Readable from the first signal on, for ever; to be watched by every poll. -1 before the installation.
int interruptDescriptor();

bool interrupted();

}  // namespace conformance
