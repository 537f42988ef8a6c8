#include "codingtools/file_glob.h"

#include "codingtools/contained_open.h"
#include "codingtools/file_error.h"
#include "codingtools/glob_pattern.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

namespace stitchkit {

namespace {

/// Order of UTF-16 code units: that of bytes, but that the surrogates of four-byte characters come before U+E000.
bool beforeInUtf16(const std::string& left, const std::string& right) {
  const auto [a, b] = std::mismatch(left.begin(), left.end(), right.begin(), right.end());
  if (a == left.end() || b == right.end()) {
    return a == left.end() && b != right.end();
  }
  const auto rank = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == 0xEE || byte == 0xEF ? byte + 0x100 : int{byte};
  };
  return rank(*a) < rank(*b);
}

bool isExcluded(const WorkspacePath& path, const SearchScope& scope) {
  for (WorkspacePath at = path; !at.isRoot(); at = at.parent()) {
    if (scope.excludedDirectories.contains(std::string(at.name()))) {
      return true;
    }
  }
  return false;
}

/// Keeps the first `most` paths, and whether there were more, without holding many more than that.
class FirstPaths {
 public:
  explicit FirstPaths(std::size_t most) : most_(most) {}

  void add(std::string_view path) {
    paths_.emplace_back(path);
    if (paths_.size() >= 2 * most_ + 64) {
      cut();
    }
  }

  std::vector<std::string> finish(bool& more) {
    cut();
    std::sort(paths_.begin(), paths_.end(), beforeInUtf16);
    more = more_;
    return std::move(paths_);
  }

 private:
  void cut() {
    if (paths_.size() > most_) {
      const auto end = paths_.begin() + static_cast<std::ptrdiff_t>(most_);
      std::nth_element(paths_.begin(), end, paths_.end(), beforeInUtf16);
      paths_.erase(end, paths_.end());
      more_ = true;
    }
  }

  std::size_t most_;
  std::vector<std::string> paths_;
  bool more_ = false;
};

}  // namespace

Result<GlobResult> globFiles(const ContainedDirectory& workspace, const WorkspacePath& base, std::string_view pattern,
                             const SearchScope& scope, const std::stop_token& stop) {
  const Result<GlobPattern> glob = GlobPattern::compile(pattern);
  if (!glob) {
    return glob.error();
  }
  GlobResult result;
  if (isExcluded(base, scope)) {
    const OpenOutcome opened = openBeneath(workspace.descriptor(), base.relative(), O_PATH | O_DIRECTORY);
    result.skippedDirectories = 1;
    return opened.fd ? Result<GlobResult>(std::move(result)) : fileError(opened.error, "open directory");
  }
  Result<TreeWalk> walk = TreeWalk::open(workspace, base, scope.walkOptions(), stop);
  if (!walk) {
    return walk.error();
  }
  const std::size_t skip = base.isRoot() ? 0 : base.relative().size() + 1;
  FirstPaths paths(scope.maxResults);
  for (;;) {
    const Result<const WalkedFile*> file = walk->next();
    if (!file) {
      return file.error();
    }
    if (*file == nullptr) {
      break;
    }
    if (glob->matches((*file)->path.substr(skip))) {
      paths.add((*file)->path);
    }
  }
  result.paths = paths.finish(result.resultTruncated);
  result.truncated = walk->truncated();
  result.skippedDirectories = walk->counts().skippedDirectories;
  result.scannedFiles = walk->counts().files;
  result.denied = std::move(walk->denied());
  result.deniedTruncated = walk->counts().denied > result.denied.size();
  return result;
}

}  // namespace stitchkit
