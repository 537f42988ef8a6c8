#include "codingtools/file_search.h"

#include "codingtools/file_error.h"
#include "codingtools/glob_pattern.h"
#include "codingtools/line_search.h"
#include "codingtools/ordered_batches.h"
#include "rpc/base/limits.h"

#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

namespace stitchkit {

namespace {

constexpr unsigned kMostThreads = 4;

unsigned usualThreads() {
  return std::clamp(std::thread::hardware_concurrency(), 1U, kMostThreads);
}

std::size_t bytesOf(const SearchMatch& match) {
  std::size_t bytes = match.path.size() + match.text.size();
  for (const auto* const lines : {&match.before, &match.after}) {
    for (const std::string& line : *lines) {
      bytes += line.size();
    }
  }
  return bytes;
}

/// Gathers matches in order until there are enough.
class Gathering {
 public:
  Gathering(const FileSearch& search, const SearchScope& scope) : search_(search), scope_(scope) {}

  /// False when it was one too many; then nothing more may be added.
  bool add(SearchMatch match) {
    bytes_ += bytesOf(match);
    const bool first = result_.matches.empty();
    if (result_.matches.size() == scope_.maxResults || (bytes_ > limits::kSearchResultBytes && !first)) {
      return false;
    }
    result_.matches.push_back(std::move(match));
    return true;
  }

  /// False when the search ends in this batch.
  bool take(SearchBatch& batch) {
    for (SearchBatch::File& file : batch.files()) {
      result_.scannedFiles += file.outcome == SearchBatch::Outcome::kSearched ? 1 : 0;
      leftOut_ = leftOut_ || file.outcome == SearchBatch::Outcome::kLeftOut || file.found.longLines;
      for (const FoundLine& line : file.found.lines) {
        if (!add(matchOf(file, line))) {
          end(file.counts);
          return false;
        }
      }
    }
    return true;
  }

  void scanned() { ++result_.scannedFiles; }

  /// The search ends where the walk had counted this.
  void end(const WalkCounts& counts) {
    ended_ = true;
    counts_ = counts;
  }

  [[nodiscard]] SearchResult finish(TreeWalk& walk) {
    const WalkCounts& counts = ended_ ? counts_ : walk.counts();
    result_.truncated = ended_ || leftOut_ || walk.truncated();
    result_.skippedDirectories = counts.skippedDirectories;
    result_.skippedSymlinks = counts.skippedSymlinks;
    result_.denied = std::move(walk.denied());
    result_.denied.resize(std::min(result_.denied.size(), counts.denied));
    result_.deniedTruncated = counts.denied > result_.denied.size();
    return std::move(result_);
  }

 private:
  [[nodiscard]] SearchMatch matchOf(const SearchBatch::File& file, const FoundLine& line) const {
    return {file.path, line.number, file.text.substr(line.begin, line.end - line.begin),
            linesBefore(file.text, line, search_.context), linesAfter(file.text, line, search_.context)};
  }

  const FileSearch& search_;
  const SearchScope& scope_;
  SearchResult result_;
  std::size_t bytes_ = 0;
  bool leftOut_ = false;
  bool ended_ = false;
  WalkCounts counts_;
};

Result<void> searchPaths(TreeWalk& walk, const LineSearch& search, Gathering& gathering) {
  for (;;) {
    const Result<const WalkedFile*> file = walk.next();
    if (!file) {
      return file.error();
    }
    if (*file == nullptr) {
      return {};
    }
    gathering.scanned();
    if (search.matches((*file)->path) && !gathering.add({std::string((*file)->path), 0, {}, {}, {}})) {
      gathering.end(walk.counts());
      return {};
    }
  }
}

/// The file is the first of a new batch when the last one has no place for it. False when no more are needed.
bool addToBatch(std::unique_ptr<SearchBatch>& batch, const WalkedFile& file, const WalkCounts& counts,
                OrderedBatches& batches) {
  if (batch->add(file, counts)) {
    return true;
  }
  const bool more = batches.add(std::exchange(batch, std::make_unique<SearchBatch>()));
  return more && batch->add(file, counts);
}

Result<void> searchContents(TreeWalk& walk, OrderedBatches& batches) {
  auto batch = std::make_unique<SearchBatch>();
  for (;;) {
    const Result<const WalkedFile*> file = walk.next();
    if (!file) {
      return file.error();
    }
    if (*file == nullptr) {
      break;
    }
    if (!addToBatch(batch, **file, walk.counts(), batches)) {
      return {};
    }
  }
  if (!batch->empty()) {
    batches.add(std::move(batch));
  }
  batches.finish();
  return {};
}

/// Which files `include` lets through, and whether it held any back.
struct Inclusion {
  std::optional<GlobPattern> glob;
  bool heldBack = false;
};

Result<void> includeBy(const FileSearch& search, Inclusion& inclusion, WalkOptions& options) {
  if (!search.include) {
    return {};
  }
  Result<GlobPattern> glob = GlobPattern::compile(*search.include);
  if (!glob) {
    return glob.error();
  }
  inclusion.glob = std::move(*glob);
  options.rules.counts = [&inclusion](std::string_view path) {
    const bool included = inclusion.glob->matches(path);
    inclusion.heldBack = inclusion.heldBack || !included;
    return included;
  };
  return {};
}

std::string hintFor(const SearchResult& result, const Inclusion& inclusion, const WalkCounts& counts) {
  if (!inclusion.heldBack || counts.files > 0 || counts.denied > 0 || result.truncated) {
    return {};
  }
  return "No file's path matches include, which is compared with the whole path: **/*.ts finds files in every "
         "directory, *.ts only those at the top.";
}

Result<dev_t> deviceOf(const ContainedDirectory& workspace) {
  struct stat status {};
  if (::fstat(workspace.descriptor(), &status) != 0) {
    return fileError(errno, "fstat");
  }
  return status.st_dev;
}

}  // namespace

Result<SearchResult> searchFiles(const ContainedDirectory& workspace, const FileSearch& search,
                                 const SearchScope& scope, const std::stop_token& stop) {
  return searchFilesWithThreads(workspace, search, scope, usualThreads(), stop);
}

Result<SearchResult> searchFilesWithThreads(const ContainedDirectory& workspace, const FileSearch& search,
                                            const SearchScope& scope, unsigned threads, const std::stop_token& stop) {
  const auto syntax = search.regex ? LineSearch::Syntax::kExpression : LineSearch::Syntax::kLiteral;
  const Result<LineSearch> matcher = LineSearch::compile(search.query, syntax);
  if (!matcher) {
    return matcher.error();
  }
  Inclusion inclusion;
  WalkOptions options = scope.walkOptions();
  if (const Result<void> included = includeBy(search, inclusion, options); !included) {
    return included.error();
  }
  const Result<dev_t> device = deviceOf(workspace);
  if (!device) {
    return device.error();
  }
  Result<TreeWalk> walk = TreeWalk::open(workspace, WorkspacePath::root(), std::move(options), stop);
  if (!walk) {
    return walk.error();
  }
  Gathering gathering(search, scope);
  Result<void> searched;
  if (search.mode == FileSearch::Mode::kPath) {
    searched = searchPaths(*walk, *matcher, gathering);
  } else {
    const BatchLimits limits{scope.maxReadBytes, scope.maxResults + 1, *device};
    OrderedBatches batches(
        *matcher, limits, threads, [&](SearchBatch& batch) { return gathering.take(batch); }, stop);
    searched = searchContents(*walk, batches);
  }
  if (!searched) {
    return searched.error();
  }
  if (stop.stop_requested()) {
    return fileWorkCancelled();
  }
  SearchResult result = gathering.finish(*walk);
  result.hint = hintFor(result, inclusion, walk->counts());
  return result;
}

}  // namespace stitchkit
