// Small file operations of the state directory. Everything here is below directories that only we write to; links are
// refused all the same.
#pragma once

#include "rpc/base/error.h"
#include "rpc/base/unique_fd.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace stitchkit {

/// The error for a failed operation on the state directory: kLimit with reason "storage" for a full disk or quota,
/// internal for the rest (a read-only or missing state directory is not the caller's doing). The
/// private detail says what failed in words: "<operation>: Permission denied"; internal ones have the errno.
Error storageError(int errnoNumber, std::string_view operation);
/// The same for an error of the contained-file engine, whose kPath means a caller's path, and there is none here.
/// `operation` stands for it in the log, with a path.
Error storageError(const Error& error, std::string_view operation);

/// A new random name: 64 lower-case hex digits.
std::string randomName();

/// Whether it is 64 lower-case hex digits: a template key, a session id.
bool isHexName(std::string_view text) noexcept;

/// Opens the directory `name` of `parent` for reading. nullopt when there is no such directory (missing, or something
/// else in its place).
Result<std::optional<UniqueFd>> openDirectory(int parent, const char* name);

/// The same, made with mode 0700 when missing.
Result<UniqueFd> openOrMakeDirectory(int parent, const char* name);

/// Makes a directory, 0700. An existing one is an error.
Result<void> makeDirectory(int parent, const char* name);

/// Writes a new file, 0600. An existing one is an error.
Result<void> writeNewFile(int parent, const char* name, std::string_view bytes);

/// nullopt when it is missing, no regular file, or over `maxBytes`.
Result<std::optional<std::string>> readSmallFile(int parent, const char* name, std::size_t maxBytes);

/// Whether `name` in `parent` is the file or directory that `fd` is open on.
bool names(int parent, const char* name, int fd);

/// Moves a directory without replacing anything: 0, or errno (EEXIST when the target is there).
int renameNew(int fromDirectory, const char* from, int toDirectory, const char* to);

}  // namespace stitchkit
