#include "codingtools/file_error.h"
#include "codingtools/file_tools.h"
#include "codingtools/literal_edit.h"
#include "codingtools/regular_file.h"
#include "codingtools/text_window.h"
#include "codingtools/tool_start.h"
#include "rpc/base/sha256.h"
#include "rpc/base/utf8.h"

namespace stitchkit {

namespace {

/// The file and its lock. Whoever held the lock before may have replaced the file: then the new one is meant.
struct LockedFile {
  FileLocks::Held lock;
  OpenedFile file;
};

Result<LockedFile> lockFile(const ToolContext& context, const WorkspacePath& path) {
  while (!context.stop.stop_requested()) {
    Result<OpenedFile> file = context.files.open(path);
    if (!file) {
      return std::move(file).error();
    }
    FileLocks::Held lock = context.locks.lock(file->identity, context.stop);
    if (!lock) {
      break;
    }
    const Result<OpenedFile> now = context.files.open(path);
    if (now && now->identity == file->identity) {
      return LockedFile{std::move(lock), std::move(*file)};
    }
  }
  return fileWorkCancelled();
}

Result<std::string> readText(const ToolContext& context, const EditFileInput& input, int file) {
  Result<std::string> content = readRegular(file, context.limits.maxReadBytes);
  if (!content && content.error().kind == ErrorKind::kLimit) {
    return Error(ErrorKind::kBadRequest, "The file is too large to edit")
        .withDetail("path", input.path)
        .withDetail("maxReadBytes", static_cast<std::int64_t>(context.limits.maxReadBytes))
        .withHint("Change it with a declared program instead.");
  }
  if (content && !isUtf8(*content)) {
    return notUtf8().withDetail("path", input.path);
  }
  return content;
}

Error changedMeanwhile(const EditFileInput& input) {
  return Error(ErrorKind::kConflict, "The file was changed while the edit was being made")
      .withDetail("path", input.path)
      .withHint("Read it again.");
}

Error changed(const EditFileInput& input, const std::string& actual) {
  return Error(ErrorKind::kConflict, "The file has changed since it was read")
      .withDetail("path", input.path)
      .withDetail("expectedSha256", *input.expectedSha256)
      .withDetail("actualSha256", actual);
}

/// The edit as it would be made: its report, and the new content.
struct Edit {
  EditFileOutput output;
  std::string content;
};

Result<Edit> makeEdit(const ToolContext& context, const EditFileInput& input, const std::string& content) {
  Edit edit;
  edit.output.path = input.path;
  edit.output.baseSha256 = sha256Hex(content);
  if (input.expectedSha256 && *input.expectedSha256 != edit.output.baseSha256) {
    return changed(input, edit.output.baseSha256);
  }
  Result<Edited> edited = replaceLiteral(content, input.oldText, input.newText, input.replaceAll);
  if (!edited) {
    return std::move(edited).error().withDetail("path", input.path);
  }
  if (edited->content.size() > context.limits.maxWriteBytes) {
    return contentTooLarge(input.path, edited->content.size(), context.limits.maxWriteBytes);
  }
  edit.output.sha256 = sha256Hex(edited->content);
  edit.output.replacements = edited->replacements;
  edit.output.bytes = edited->content.size();
  edit.content = std::move(edited->content);
  return edit;
}

boost::json::object requestFor(const EditFileInput& input, const EditFileOutput& output) {
  return {{"operation", "edit"},           {"path", input.path},          {"baseSha256", output.baseSha256},
          {"resultSha256", output.sha256}, {"resultBytes", output.bytes}, {"replacements", output.replacements},
          {"dryRun", input.dryRun}};
}

}  // namespace

Result<EditFileOutput> editFile(const ToolContext& context, const EditFileInput& input) {
  const Result<WorkspacePath> path = seenPath(context, input.path, RootPath::kRefused);
  if (!path) {
    return path.error();
  }
  const Result<LockedFile> locked = lockFile(context, *path);
  if (!locked) {
    return locked.error();
  }
  const Result<std::string> content = readText(context, input, locked->file.fd.get());
  if (!content) {
    return content.error();
  }
  Result<Edit> edit = makeEdit(context, input, *content);
  if (!edit) {
    return std::move(edit).error();
  }
  if (Result<void> allowed = context.guard.authorize(requestFor(input, edit->output), context.stop); !allowed) {
    return std::move(allowed).error();
  }
  if (input.dryRun) {
    return std::move(edit->output);
  }
  if (context.guard.asksHost()) {
    // A program in the sandbox may have written to the same file while the host was thinking.
    const Result<std::string> now = readText(context, input, locked->file.fd.get());
    if (!now || *now != *content) {
      return now ? changedMeanwhile(input) : now.error();
    }
  }
  Result<ReplacedFile> written = context.files.rewrite(*path, locked->file.identity, edit->content);
  if (!written) {
    return std::move(written).error();
  }
  context.replaced.push_back(std::move(*written));
  edit->output.applied = true;
  return std::move(edit->output);
}

}  // namespace stitchkit
