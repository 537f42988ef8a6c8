// The tools for single files (PROTOCOL.md, section 7): one file of code each.
//
// All of them: the path is checked by its text, then by the policy of paths, then against the disk, then the host is
// asked for the operation, and then it is made sure that what was looked at is still there.
#pragma once

#include "codingtools/tool_context.h"
#include "rpc/base/error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stitchkit {

struct ReadFileInput {
  std::string path;
  std::uint64_t offset = 0;
  std::optional<std::size_t> maxBytes;
};
struct ReadFileOutput {
  std::string path;
  std::string text;
  std::size_t bytes = 0;
  std::optional<std::string> sha256;  ///< of the whole file; none for one over FileDigests::kMaxBytes
  bool truncated = false;
  std::optional<std::uint64_t> nextOffset;
};
Result<ReadFileOutput> readFile(const ToolContext& context, const ReadFileInput& input);
/// The same where it can be had from memory alone, for a thread that must not wait: the guard does not ask the host.
/// Nothing where it cannot, and nothing instead of any error; ask readFile() then.
std::optional<ReadFileOutput> readCachedFile(const ToolContext& context, const ReadFileInput& input);

struct WriteFileInput {
  std::string path;
  std::string content;
  bool overwrite = false;
};
struct WriteFileOutput {
  std::string path;
  std::size_t bytes = 0;
  std::vector<std::string> createdDirectories;  ///< outermost first
};
Result<WriteFileOutput> writeFile(const ToolContext& context, const WriteFileInput& input);

struct EditFileInput {
  std::string path;
  std::string oldText;
  std::string newText;
  bool replaceAll = false;
  std::optional<std::string> expectedSha256;
  bool dryRun = false;
};
struct EditFileOutput {
  std::string path;
  std::string baseSha256;
  std::string sha256;
  std::size_t replacements = 0;
  std::size_t bytes = 0;
  bool applied = false;
};
Result<EditFileOutput> editFile(const ToolContext& context, const EditFileInput& input);

/// kBadRequest with `details.bytes` and `details.maxWriteBytes`.
Error contentTooLarge(const std::string& path, std::size_t bytes, std::size_t limit);

}  // namespace stitchkit
