// Failures as values. An error has a kind (what the caller should do about it), a public message that may
// cross the wire, and a private detail that never does (host paths, errno texts: they go to the log).
#pragma once

#include <boost/assert/source_location.hpp>
#include <boost/system/result.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace stitchkit {

/// One member for each stable name of PROTOCOL.md, section 2. Numbers and wire names: rpc/wire_error.h.
enum class ErrorKind : std::uint8_t {
  kParse,
  kInvalidRequest,
  kMethodNotFound,
  kValidation,
  kInternal,
  kCancelled,
  kUnavailable,
  kBusy,
  kStopped,
  kStateMismatch,
  kNetworkDenied,
  kLimit,
  kPath,
  kBadRequest,
  kForbidden,
  kNotFound,
  kConflict,
  kInsufficient,
  kSpillReferenceUnknown,
};

/// One fault of a parameter. `path` names the member with dots and indexes (`command.args.0`), "" the whole.
struct ValidationIssue {
  std::string path;
  std::string message;
};

/// A value in `error.data.details`.
using ErrorDetail =
    std::variant<std::int64_t, bool, std::string, std::vector<std::string>, std::vector<ValidationIssue>>;

/// A failure on its way to the caller.
struct Error {
  ErrorKind kind = ErrorKind::kInternal;
  std::string message;                                       ///< public: no host path, no errno text, no secret
  std::string hint;                                          ///< public: what to do next; "" for none
  std::string reason;                                        ///< public: a stable word, such as "deadline"; "" for none
  std::vector<std::pair<std::string, ErrorDetail>> details;  ///< public
  std::string privateDetail;                                 ///< for the log only
  int errnoNumber = 0;  ///< private: of a path or of the state directory, for whoever looks for the cause; else 0

  Error() = default;  ///< boost::system::result asks for it
  Error(ErrorKind errorKind, std::string publicMessage) : kind(errorKind), message(std::move(publicMessage)) {}

  Error&& withHint(std::string text) && {
    hint = std::move(text);
    return std::move(*this);
  }
  Error&& withReason(std::string word) && {
    reason = std::move(word);
    return std::move(*this);
  }
  Error&& withDetail(std::string name, ErrorDetail value) && {
    details.emplace_back(std::move(name), std::move(value));
    return std::move(*this);
  }
  Error&& withPrivate(std::string text) && {
    privateDetail = std::move(text);
    return std::move(*this);
  }
  Error&& withErrno(int number) && {
    errnoNumber = number;
    return std::move(*this);
  }
};

/// A value or the reason why there is none.
template <class T>
using Result = boost::system::result<T, Error>;

/// Thrown by Result::value() on an error: a fault of ours, since callers test first.
[[noreturn]] void throw_exception_from_error(const Error& error, const boost::source_location& where);

/// The symbolic name of an errno ("ENOENT"), as it stands in `details.errno`; "E<number>" when unknown.
std::string errnoName(int number);

/// A host-level failure: public text without a cause, the cause ("open: No such file or directory") private.
Error internalError(std::string publicMessage, std::string_view operation, int errnoNumber);

/// SANDBOX_PATH with `details.errno`, for a path that is missing or of the wrong kind.
Error pathError(std::string publicMessage, int errnoNumber);

}  // namespace stitchkit
