#include "codingtools/tree_walk.h"

#include "codingtools/contained_open.h"
#include "codingtools/file_error.h"
#include "codingtools/tool_path.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace stitchkit {

namespace {

/// Directories that stay open on the way down; those above are opened again on the way up.
constexpr std::size_t kOpenLevels = 8;
/// Entries held at once, of all directories on the way and ahead. Each directory gets a part of what is left.
constexpr std::size_t kHeldEntries = 65536;
constexpr std::size_t kLeastCapacity = 1024;
/// What one request asks about: entries listed ahead for it, and bytes of its paths.
constexpr std::size_t kAskedEntries = 4096;
constexpr std::size_t kAskedBytes = 512UL * 1024;

/// Gone or replaced since it was listed.
bool hasVanished(int error) {
  return error == ENOENT || error == ENOTDIR || error == ELOOP;
}

bool isForbidden(int error) {
  return error == EACCES || error == EPERM;
}

Error walkError(int error) {
  return error == ECANCELED ? fileWorkCancelled() : fileError(error, "walk");
}

}  // namespace

Result<TreeWalk> TreeWalk::open(const ContainedDirectory& workspace, const WorkspacePath& path, WalkOptions options,
                                std::stop_token stop) {
  if (path.tooLong()) {
    return fileError(ENAMETOOLONG, "check");
  }
  OpenOutcome top = openBeneath(workspace.descriptor(), path.relative(), kReadDirectory);
  if (!top.fd) {
    return fileError(top.error, "open directory");
  }
  TreeWalk walk(std::move(options), std::move(stop));
  auto node = std::make_unique<Node>();
  node->prefix = path.isRoot() ? std::string() : path.relative() + '/';
  node->directory = std::make_shared<const UniqueFd>(std::move(top.fd));
  if (const int error = walk.list(*node, node->directory->get()); error != 0) {
    return walkError(error);
  }
  walk.push(std::move(node));
  if (const Result<void> asked = walk.ask(*walk.levels_.back()); !asked) {
    return asked.error();
  }
  return walk;
}

Result<const WalkedFile*> TreeWalk::next() {
  while (!levels_.empty()) {
    if (stop_.stop_requested()) {
      return fileWorkCancelled();
    }
    Node& node = *levels_.back();
    if (node.position == node.listing.size()) {
      if (const Result<void> more = refill(node); !more) {
        return more.error();
      }
      continue;
    }
    const std::size_t position = node.position++;
    const TreeListing::Entry& entry = node.listing.entries()[position];
    if (entry.denied) {
      report(node, entry);
    } else if (entry.directory) {
      if (const Result<void> entered = enter(position); !entered) {
        return entered.error();
      }
    } else if (counts_.files == options_.maxFiles) {
      truncated_ = true;
      levels_.clear();
    } else if (const auto& directory = descriptorOf(levels_.size() - 1)) {
      ++counts_.files;
      path_.assign(node.prefix).append(node.listing.name(entry));
      file_ = {directory, path_, path_.c_str() + node.prefix.size()};
      return &file_;
    } else {
      leave();
    }
  }
  return nullptr;
}

int TreeWalk::list(Node& node, int directory) {
  const std::size_t before = node.listing.size();
  const std::size_t left = kHeldEntries - std::min(kHeldEntries, held_);
  const std::size_t most = options_.gate != nullptr ? kAskedEntries : kHeldEntries;
  const int error = node.listing.read(directory, node.prefix, options_.rules,
                                      std::clamp(left / 4, kLeastCapacity, most), reader_, stop_);
  held_ += node.listing.size() - before;
  return error;
}

Result<void> TreeWalk::enter(std::size_t position) {
  if (levels_.size() > options_.maxDepth) {
    truncated_ = true;
    return {};
  }
  Node& parent = *levels_.back();
  const std::string name(parent.listing.name(parent.listing.entries()[position]));
  const auto& directory = descriptorOf(levels_.size() - 1);
  OpenOutcome opened =
      directory ? openSegment(directory->get(), name.c_str(), kReadDirectory) : OpenOutcome{UniqueFd(), ENOENT};
  auto ahead = parent.ahead.extract(position);
  std::unique_ptr<Node> node = ahead ? std::move(ahead.mapped()) : std::make_unique<Node>();
  if (!opened.fd) {
    release(*node);
    truncated_ = truncated_ || isForbidden(opened.error);
    return hasVanished(opened.error) || isForbidden(opened.error) ? Result<void>() : walkError(opened.error);
  }
  node->directory = std::make_shared<const UniqueFd>(std::move(opened.fd));
  if (ahead) {
    push(std::move(node));
    return {};
  }
  node->prefix = parent.prefix + name + '/';
  if (const int error = list(*node, node->directory->get()); error != 0) {
    return walkError(error);
  }
  push(std::move(node));
  return ask(*levels_.back());
}

void TreeWalk::push(std::unique_ptr<Node> node) {
  counts_.skippedDirectories += node->listing.directoriesPassedOver();
  counts_.skippedSymlinks += node->listing.symlinks();
  truncated_ = truncated_ || node->listing.pathsTooLong();
  levels_.push_back(std::move(node));
  if (levels_.size() > kOpenLevels + 1) {
    levels_[levels_.size() - 1 - kOpenLevels]->directory.reset();
  }
}

Result<void> TreeWalk::refill(Node& node) {
  if (!node.listing.hasMore()) {
    leave();
    return {};
  }
  const auto& directory = descriptorOf(levels_.size() - 1);
  if (!directory) {
    leave();
    return {};
  }
  if (const int error = list(node, directory->get()); error != 0) {
    return walkError(error);
  }
  node.position = 0;
  return ask(node);
}

void TreeWalk::leave() {
  release(*levels_.back());
  levels_.pop_back();
}

void TreeWalk::release(const Node& node) {
  held_ -= node.listing.size();
  for (const auto& [position, ahead] : node.ahead) {
    release(*ahead);
  }
}

void TreeWalk::report(const Node& node, const TreeListing::Entry& entry) {
  ++counts_.denied;
  if (denied_.size() < options_.maxDenied) {
    denied_.push_back({node.prefix + std::string(node.listing.name(entry)), entry.directory});
  }
}

/// A directory that was closed is opened again by its name from the nearest one that is open. Whoever moves directories
/// meanwhile may give us another of the workspace's in its place, as between any two openings of one path.
const std::shared_ptr<const UniqueFd>& TreeWalk::descriptorOf(std::size_t level) {
  std::size_t open = level;
  while (!levels_[open]->directory && open > 0) {
    --open;
  }
  UniqueFd opened;
  for (std::size_t i = open + 1; i <= level; ++i) {
    const std::string& above = levels_[i - 1]->prefix;
    const std::string& own = levels_[i]->prefix;
    const std::string name = own.substr(above.size(), own.size() - above.size() - 1);
    const int parent = opened ? opened.get() : levels_[open]->directory->get();
    OpenOutcome step = openSegment(parent, name.c_str(), kReadDirectory);
    opened = std::move(step.fd);
    if (!opened) {
      break;
    }
  }
  if (opened) {
    levels_[level]->directory = std::make_shared<const UniqueFd>(std::move(opened));
  }
  return levels_[level]->directory;
}

/// Asks about the entries of `node`, the deepest level, and of what can be listed ahead.
Result<void> TreeWalk::ask(Node& node) {
  if (options_.gate == nullptr) {
    return {};
  }
  Listed listed{{&node}, node.listing.size()};
  for (std::size_t level = levels_.size() - 1; level-- > 0;) {
    Node& above = *levels_[level];
    if (above.directory) {
      listAhead(above, above.directory->get(), {}, above.position, level + 1, listed);
    }
  }
  std::vector<TreeListing::Entry*> entries;
  std::vector<std::string> paths;
  std::size_t bytes = 0;
  for (Node* const asked : listed.nodes) {
    for (TreeListing::Entry& entry : asked->listing.entries()) {
      entries.push_back(&entry);
      paths.push_back(asked->prefix + std::string(asked->listing.name(entry)));
      bytes += paths.back().size();
      if (bytes >= kAskedBytes) {
        bytes = 0;
        if (Result<void> answered = askAbout(entries, paths); !answered) {
          return answered;
        }
      }
    }
  }
  return askAbout(entries, paths);
}

Result<void> TreeWalk::askAbout(std::vector<TreeListing::Entry*>& entries, std::vector<std::string>& paths) {
  if (paths.empty()) {
    return {};
  }
  const Result<std::vector<bool>> answers = options_.gate->allowed(paths, stop_);
  if (!answers) {
    return answers.error();
  }
  if (answers->size() != paths.size()) {
    return Error(ErrorKind::kForbidden, "The host did not say which paths may be seen");
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries[i]->denied = !(*answers)[i];
  }
  entries.clear();
  paths.clear();
  return {};
}

bool TreeWalk::mayListAhead(const Listed& listed) const {
  return listed.entries < std::min(kAskedEntries, options_.maxFiles - counts_.files) &&
         listed.nodes.size() < kAskedEntries && held_ < kHeldEntries / 2 && !stop_.stop_requested();
}

/// Lists directories of `node` from an entry on, and of those that were listed before, in the order of the walk.
/// `relative` is the way to `node` from `directory`. What cannot be listed now is listed when its turn comes.
void TreeWalk::listAhead(Node& node, int directory, const std::string& relative, std::size_t from, std::size_t depth,
                         Listed& listed) {
  const std::vector<TreeListing::Entry>& entries = node.listing.entries();
  for (std::size_t i = from; depth <= options_.maxDepth && i < entries.size() && mayListAhead(listed); ++i) {
    if (!entries[i].directory || entries[i].denied) {
      continue;
    }
    const std::string name(node.listing.name(entries[i]));
    const std::string way = relative.empty() ? name : relative + '/' + name;
    if (const auto known = node.ahead.find(i); known != node.ahead.end()) {
      listAhead(*known->second, directory, way, 0, depth + 1, listed);
      continue;
    }
    const OpenOutcome opened = openBeneath(directory, way, kReadDirectory);
    auto child = std::make_unique<Node>();
    child->prefix = node.prefix + name + '/';
    if (opened.fd && list(*child, opened.fd.get()) == 0) {
      listed.nodes.push_back(child.get());
      listed.entries += child->listing.size();
      node.ahead.emplace(i, std::move(child));
    } else {
      release(*child);
    }
  }
}

}  // namespace stitchkit
