#include "codingtools/directory_entries.h"
#include "codingtools/discovery_tools.h"
#include "codingtools/file_error.h"
#include "codingtools/tool_start.h"
#include "rpc/base/utf8.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

namespace stitchkit {

namespace {

/// Entries that are held, and that the host is asked about, at once.
constexpr std::size_t kBatch = 4096;

/// One listing on its way.
class Listing {
 public:
  Listing(const ToolContext& context, const WorkspacePath& path, int directory)
      : context_(context),
        prefix_(path.isRoot() ? std::string() : path.relative() + "/"),
        directory_(directory),
        most_(context.limits.maxListEntries) {}

  Result<void> run(ListDirectoryOutput& output) {
    DirectoryEntries found;
    do {
      if (const int error = found.read(directory_, std::max(kBatch, most_ + 1), context_.stop); error != 0) {
        return error == ECANCELED ? fileWorkCancelled() : fileError(error, "getdents64");
      }
      if (Result<void> taken = take(found.entries(), output); !taken) {
        return taken;
      }
    } while (found.hasMore() && output.entries.size() < most_);
    output.truncated = output.truncated || found.hasMore();
    return {};
  }

 private:
  Result<void> take(const std::vector<DirectoryEntry>& entries, ListDirectoryOutput& output) {
    const Result<std::vector<bool>> seen = allowed(entries);
    if (!seen) {
      return seen.error();
    }
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (!(*seen)[i]) {
        deny(entries[i], output);
      } else if (output.entries.size() < most_) {
        add(entries[i], output);
      } else {
        output.truncated = true;
      }
    }
    return {};
  }

  Result<std::vector<bool>> allowed(const std::vector<DirectoryEntry>& entries) {
    if (entries.empty() || context_.guard.allowsEveryPath()) {
      return std::vector<bool>(entries.size(), true);
    }
    std::vector<std::string> paths;
    paths.reserve(entries.size());
    for (const DirectoryEntry& entry : entries) {
      paths.push_back(pathOf(entry));
    }
    return context_.guard.allowed(paths, context_.stop);
  }

  /// A name that is not UTF-8 is told, and asked about, with what stands for it.
  [[nodiscard]] std::string pathOf(const DirectoryEntry& entry) const { return prefix_ + toUtf8(entry.name); }

  void deny(const DirectoryEntry& entry, ListDirectoryOutput& output) const {
    if (output.denied.size() < most_) {
      output.denied.push_back({pathOf(entry), entryKindName(entry.kind)});
    } else {
      output.deniedTruncated = true;
    }
  }

  /// An entry that is gone by now, or has become something else, is left out.
  void add(const DirectoryEntry& entry, ListDirectoryOutput& output) const {
    ListedEntry listed;
    listed.addressable = isUtf8(entry.name) && entry.name.find('\\') == std::string::npos;
    listed.name = toUtf8(entry.name);
    listed.kind = entryKindName(entry.kind);
    listed.excluded = entry.kind == EntryKind::kDirectory && context_.excludedDirectories.count(entry.name) != 0;
    if (entry.kind == EntryKind::kFile) {
      struct stat status {};
      if (::fstatat(directory_, entry.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode)) {
        return;
      }
      listed.bytes = static_cast<std::uint64_t>(status.st_size);
    }
    output.entries.push_back(std::move(listed));
  }

  const ToolContext& context_;
  std::string prefix_;
  int directory_;
  std::size_t most_;
};

}  // namespace

Result<ListDirectoryOutput> listDirectory(const ToolContext& context, const ListDirectoryInput& input) {
  const Result<AllowedDirectory> allowed =
      openAllowedDirectory(context, input.path, {{"operation", "list"}, {"path", input.path}});
  if (!allowed) {
    return allowed.error();
  }
  ListDirectoryOutput output;
  output.path = input.path;
  if (Result<void> listed = Listing(context, allowed->path, allowed->directory.get()).run(output); !listed) {
    return std::move(listed).error();
  }
  return output;
}

}  // namespace stitchkit
