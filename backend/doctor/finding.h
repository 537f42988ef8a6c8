// What one check of the doctor has found.
#pragma once

#include <cstdint>
#include <string>

namespace stitchkit {

enum class FindingStatus : std::uint8_t {
  kOk,
  kWarning,  ///< isolation works, or may work, but something is missing or not as it should be
  kFailed,   ///< isolation does not work
};

struct Finding {
  std::string name;  ///< of the check; stable
  FindingStatus status = FindingStatus::kOk;
  std::string cause;    ///< a stable word, that of `error.data.reason`; "" with kOk
  std::string message;  ///< for the operator: may hold host paths and the words of programs
  std::string hint;     ///< what to do; "" with kOk
};

}  // namespace stitchkit
