#include "codingtools/file_error.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

namespace stitchkit {

namespace {

struct NumberWords {
  int number;
  const char* message;
};

constexpr std::array kPathWords{
    NumberWords{ENOENT, "The path does not exist"},
    NumberWords{ENOTDIR, "A segment of the path is not a directory"},
    NumberWords{EISDIR, "The path is a directory"},
    NumberWords{EACCES, "The workspace does not permit access to the path"},
    NumberWords{EPERM, "The workspace does not permit the operation on the path"},
    NumberWords{ENAMETOOLONG, "The path is too long"},
    NumberWords{ELOOP, "The path leads through a symbolic link"},
    NumberWords{ENXIO, "The path is not a regular file"},
    NumberWords{ETXTBSY, "The file is being executed"},
    NumberWords{EROFS, "The path cannot be changed: its file system is read-only"},
    NumberWords{ENOTEMPTY, "The directory kept filling up while it was removed"},
    NumberWords{EAGAIN, "A program in the sandbox holds a lease on the file"},
    NumberWords{EBUSY, "The path is in use"},
    NumberWords{EEXIST, "The path exists already"},
    NumberWords{ESTALE, "The file has been replaced meanwhile"},
    NumberWords{EINVAL, "The file system does not accept the name"},
    NumberWords{EILSEQ, "The file system does not accept the name"},
    NumberWords{EMLINK, "The directory has too many entries"},
};

}  // namespace

Error fileError(int errnoNumber, std::string_view operation) {
  if (errnoNumber == ENOSPC || errnoNumber == EDQUOT) {
    return Error(ErrorKind::kLimit, "There is no space left for the file")
        .withReason("storage")
        .withDetail("errno", errnoName(errnoNumber))
        .withHint("Remove files that are no longer needed and try again.");
  }
  const auto* const words = std::find_if(kPathWords.begin(), kPathWords.end(),
                                         [&](const NumberWords& entry) { return entry.number == errnoNumber; });
  if (words == kPathWords.end()) {
    return internalError("The file operation failed", operation, errnoNumber);
  }
  return pathError(words->message, errnoNumber);
}

bool isSymlink(const Error& error) {
  return error.kind == ErrorKind::kPath &&
         std::any_of(error.details.begin(), error.details.end(), [](const auto& detail) {
           const auto* const text = std::get_if<std::string>(&detail.second);
           return detail.first == "errno" && text != nullptr && *text == "ELOOP";
         });
}

Error fileTooLarge(std::uint64_t bytes, std::uint64_t limit) {
  return Error(ErrorKind::kLimit, "The file is too large")
      .withDetail("bytes", static_cast<std::int64_t>(bytes))
      .withDetail("limit", static_cast<std::int64_t>(limit));
}

Error fileWorkCancelled() {
  return Error(ErrorKind::kCancelled, "The request was cancelled");
}

}  // namespace stitchkit
