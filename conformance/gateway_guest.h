// The guest that speaks to the gateway's socket: a Python program that the runner has the implementation start.
#pragma once

#include <optional>
#include <string>

#include "conformance/json_text.h"

namespace conformance {

/// The parameters of session.run or session.spawn for a step `gateway`. nullopt, or what is wrong with the step.
std::optional<std::string> guestParams(const Json& step, Json& params);

/// `[{replies: [{status, headers, body}], rest, end, text}, ...]`, one for each connection, from what the guest
/// printed. `headers` leaves out what frames the body; a name that came twice has a list. `rest` is what cannot be read
/// as a reply, "" mostly. `end` is `closed`, `open` (the guest waited in vain) or `left` (the guest went first).
/// nullopt, or why it cannot be read.
std::optional<std::string> readGuestOutput(const std::string& output, bool toHead, Json& connections);

}  // namespace conformance
