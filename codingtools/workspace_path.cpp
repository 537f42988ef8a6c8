#include "codingtools/workspace_path.h"

#include <climits>

namespace stitchkit {

namespace {

constexpr std::string_view kRoot = "/workspace";

Error refuse(std::string message) {
  return Error(ErrorKind::kPath, std::move(message))
      .withHint("Name a file as dir/file or /workspace/dir/file, and the workspace itself as . or /workspace.");
}

/// "" when every segment is an ordinary name, else what is wrong.
std::string_view faultOfSegments(std::string_view path) {
  for (std::size_t begin = 0;;) {
    const std::size_t end = path.find('/', begin);
    const std::string_view segment = path.substr(begin, end == std::string_view::npos ? end : end - begin);
    if (segment.empty()) {
      return "The path has an empty segment";
    }
    if (segment == "." || segment == "..") {
      return "The path has a . or .. segment";
    }
    if (end == std::string_view::npos) {
      return {};
    }
    begin = end + 1;
  }
}

}  // namespace

Result<WorkspacePath> WorkspacePath::parse(std::string_view text) {
  if (text == "." || text == kRoot) {
    return root();
  }
  if (text.empty()) {
    return refuse("The path is empty");
  }
  if (text.find('\0') != std::string_view::npos) {
    return refuse("The path holds a NUL character");
  }
  if (text.find('\\') != std::string_view::npos) {
    return refuse("The path holds a backslash");
  }
  if (text.front() == '/') {
    if (text.substr(0, kRoot.size()) != kRoot || text[kRoot.size()] != '/') {
      return refuse("The path is absolute and not below /workspace");
    }
    text.remove_prefix(kRoot.size() + 1);
  }
  if (const std::string_view fault = faultOfSegments(text); !fault.empty()) {
    return refuse(std::string(fault));
  }
  return WorkspacePath(std::string(text));
}

std::string WorkspacePath::canonical() const {
  std::string path(kRoot);
  if (!isRoot()) {
    path += '/';
    path += relative_;
  }
  return path;
}

WorkspacePath WorkspacePath::parent() const {
  const std::size_t slash = relative_.rfind('/');
  return WorkspacePath(slash == std::string::npos ? std::string() : relative_.substr(0, slash));
}

std::string_view WorkspacePath::name() const noexcept {
  const std::size_t slash = relative_.rfind('/');
  return std::string_view(relative_).substr(slash == std::string::npos ? 0 : slash + 1);
}

bool WorkspacePath::tooLong() const noexcept {
  if (kRoot.size() + 1 + relative_.size() >= PATH_MAX) {
    return true;
  }
  for (std::size_t begin = 0;;) {
    const std::size_t end = relative_.find('/', begin);
    const std::size_t length = (end == std::string::npos ? relative_.size() : end) - begin;
    if (length > NAME_MAX) {
      return true;
    }
    if (end == std::string::npos) {
      return false;
    }
    begin = end + 1;
  }
}

}  // namespace stitchkit
