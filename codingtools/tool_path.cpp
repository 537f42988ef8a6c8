#include "codingtools/tool_path.h"

#include <climits>
#include <string>
#include <utility>

namespace stitchkit {

namespace {

constexpr std::string_view kWorkspace = "/workspace";
constexpr const char* kRelativeHint = "Name the file relative to the workspace, as in src/main.ts.";

Error refuse(ErrorKind kind, const char* message, std::string_view path, std::string hint = kRelativeHint) {
  return Error(kind, message).withDetail("path", std::string(path)).withHint(std::move(hint));
}

/// The path that was meant, as a tool would name it; "" when it lies outside.
std::string relativeOf(std::string_view absolute) {
  while (absolute.size() > 1 && absolute.back() == '/') {
    absolute.remove_suffix(1);
  }
  if (absolute == kWorkspace) {
    return ".";
  }
  if (absolute.substr(0, kWorkspace.size()) != kWorkspace || absolute[kWorkspace.size()] != '/') {
    return {};
  }
  const Result<WorkspacePath> parsed = WorkspacePath::parse(absolute);
  return parsed ? toolPathText(*parsed) : std::string();
}

Error absolutePath(std::string_view text) {
  const std::string recovery = relativeOf(text);
  if (recovery.empty()) {
    return refuse(ErrorKind::kBadRequest, "The path is absolute", text);
  }
  return refuse(ErrorKind::kBadRequest, "The path is absolute", text, "Use " + recovery + " instead.")
      .withDetail("recoveryPath", recovery);
}

bool hasLongSegment(std::string_view relative) {
  for (;;) {
    const std::size_t end = relative.find('/');
    if (std::min(end, relative.size()) > NAME_MAX) {
      return true;
    }
    if (end == std::string_view::npos) {
      return false;
    }
    relative.remove_prefix(end + 1);
  }
}

}  // namespace

Result<WorkspacePath> parseToolPath(std::string_view text, RootPath root, std::size_t maxBytes) {
  if (text.size() > maxBytes) {
    return Error(ErrorKind::kBadRequest, "The path is too long")
        .withDetail("maxPathBytes", static_cast<std::int64_t>(maxBytes))
        .withHint("Use a shorter path.");
  }
  if (text.find('\0') != std::string_view::npos) {
    return refuse(ErrorKind::kBadRequest, "The path holds a NUL character", text);
  }
  if (!text.empty() && text.front() == '/') {
    return absolutePath(text);
  }
  if (text == "." && root == RootPath::kAllowed) {
    return WorkspacePath::root();
  }
  const Result<WorkspacePath> parsed = WorkspacePath::parse(text);
  if (!parsed || parsed->isRoot()) {
    return refuse(ErrorKind::kForbidden, parsed ? "The path is the workspace itself" : parsed.error().message.c_str(),
                  text, "Use / between ordinary names: no backslash, and no empty, . or .. segment.");
  }
  if (hasLongSegment(parsed->relative())) {
    return refuse(ErrorKind::kBadRequest, "A name in the path is over 255 bytes long", text, "Use shorter names.");
  }
  return *parsed;
}

std::string toolPathText(const WorkspacePath& path) {
  return path.isRoot() ? "." : path.relative();
}

}  // namespace stitchkit
