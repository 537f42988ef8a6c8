// Walking a tree inside a workspace, file by file, in an order that only its names decide.
#pragma once

#include "codingtools/contained_directory.h"
#include "codingtools/directory_reader.h"
#include "codingtools/path_gate.h"
#include "codingtools/tree_listing.h"
#include "codingtools/workspace_path.h"
#include "rpc/base/error.h"
#include "rpc/base/unique_fd.h"

#include <cstddef>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace stitchkit {

struct WalkOptions {
  std::size_t maxDepth = 32;  ///< 0: the files of the top only
  std::size_t maxFiles = 10000;
  std::size_t maxDenied = 100;  ///< denied paths that are named
  ListingRules rules;
  PathGate* gate = nullptr;  ///< not owned; none: everything may be seen
};

/// What the walk has met so far; depends on the tree and the options alone.
struct WalkCounts {
  std::size_t files = 0;
  std::size_t skippedDirectories = 0;
  std::size_t skippedSymlinks = 0;
  std::size_t denied = 0;
};

struct DeniedPath {
  std::string path;
  bool directory = false;
};

/// Valid until the next call of next(), but for `directory`, which may be kept to open the file in.
struct WalkedFile {
  std::shared_ptr<const UniqueFd> directory;
  std::string_view path;  ///< from the workspace on
  const char* name = "";  ///< in `directory`
};

/// Depth first, the entries of a directory in NameOrder, files and directories alike. Links are never followed,
/// whatever others rename and replace meanwhile (contained_open.h); only regular files count. Names that are not UTF-8
/// are passed over. Memory and descriptors stay within the limits, whatever the tree. Not thread-safe; blocks on the
/// disk, and on the gate.
///
/// The gate is asked for all that counts of a directory and its directories together, and in the same request for
/// directories that come later, as far as they are known; what it denies is neither entered nor given out.
class TreeWalk {
 public:
  /// Of the directory at `path`; kPath with `details.errno` when it is none.
  static Result<TreeWalk> open(const ContainedDirectory& workspace, const WorkspacePath& path, WalkOptions options,
                               std::stop_token stop);

  /// The next file; nullptr at the end. An entry that is gone or has become something else is passed over.
  Result<const WalkedFile*> next();

  [[nodiscard]] const WalkCounts& counts() const noexcept { return counts_; }
  /// Something was left out: below the depth, after the most files, or not readable for us.
  [[nodiscard]] bool truncated() const noexcept { return truncated_; }
  /// The first `maxDenied` of counts().denied, in order.
  [[nodiscard]] std::vector<DeniedPath>& denied() noexcept { return denied_; }

 private:
  /// A directory that was listed: on the way to where we are, or ahead of its turn because the gate was asked about it.
  struct Node {
    std::string prefix;  ///< of the paths of its entries: its own and a slash
    TreeListing listing;
    std::size_t position = 0;                            ///< of the entry whose turn it is
    std::shared_ptr<const UniqueFd> directory;           ///< none: closed, see descriptorOf()
    std::map<std::size_t, std::unique_ptr<Node>> ahead;  ///< listed ahead, by the position of their entry
  };

  TreeWalk(WalkOptions options, std::stop_token stop) : options_(std::move(options)), stop_(std::move(stop)) {}

  Result<void> enter(std::size_t position);
  void push(std::unique_ptr<Node> node);
  Result<void> refill(Node& node);
  void leave();
  void report(const Node& node, const TreeListing::Entry& entry);
  int list(Node& node, int directory);
  void release(const Node& node);
  const std::shared_ptr<const UniqueFd>& descriptorOf(std::size_t level);

  /// What one request is about.
  struct Listed {
    std::vector<Node*> nodes;
    std::size_t entries = 0;
  };
  Result<void> ask(Node& node);
  Result<void> askAbout(std::vector<TreeListing::Entry*>& entries, std::vector<std::string>& paths);
  void listAhead(Node& node, int directory, const std::string& relative, std::size_t from, std::size_t depth,
                 Listed& listed);
  [[nodiscard]] bool mayListAhead(const Listed& listed) const;

  WalkOptions options_;
  std::stop_token stop_;
  DirectoryReader reader_;
  std::vector<std::unique_ptr<Node>> levels_;  ///< from the top to where we are
  std::size_t held_ = 0;                       ///< entries of all nodes
  WalkCounts counts_;
  bool truncated_ = false;
  std::vector<DeniedPath> denied_;
  std::string path_;
  WalkedFile file_;
};

}  // namespace stitchkit
