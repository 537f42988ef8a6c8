#include "conformance/tree_snapshot.h"

#include <sys/stat.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "conformance/bytes.h"

namespace conformance {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kShownText = 65536;
constexpr off_t kDigested = 64 * 1024 * 1024;  ///< sparse files may be larger than any memory

std::string kindOf(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return "file";
    case S_IFDIR:
      return "directory";
    case S_IFLNK:
      return "symlink";
    case S_IFIFO:
      return "fifo";
    case S_IFSOCK:
      return "socket";
    default:
      return "device";
  }
}

std::string readWhole(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

Json describeEntry(const fs::path& path) {
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0) {
    return nullptr;
  }
  Json entry = {{"kind", kindOf(facts.st_mode)}};
  if (S_ISLNK(facts.st_mode)) {
    entry["target"] = fs::read_symlink(path).string();
    return entry;
  }
  std::array<char, 8> mode{};
  std::snprintf(mode.data(), mode.size(), "%04o", static_cast<unsigned>(facts.st_mode & 07777U));
  entry["mode"] = mode.data();
  if (S_ISREG(facts.st_mode)) {
    entry["bytes"] = static_cast<std::size_t>(facts.st_size);
  }
  if (S_ISREG(facts.st_mode) && facts.st_size <= kDigested) {
    const std::string bytes = readWhole(path);
    entry["sha256"] = sha256Hex(bytes);
    if (bytes.size() <= kShownText && isUtf8(bytes)) {
      entry["text"] = bytes;
    }
  }
  return entry;
}

std::string identityOf(const fs::path& path) {
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0 || S_ISDIR(facts.st_mode)) {
    return "";
  }
  return std::to_string(facts.st_ino) + " " + std::to_string(facts.st_mtim.tv_sec) + "." +
         std::to_string(facts.st_mtim.tv_nsec);
}

/// Names that are not UTF-8 get through as they are: the library minds only when it writes JSON.
void forEachEntry(const std::string& path, const std::function<void(const fs::path&, const std::string&)>& visit) {
  std::error_code error;
  for (fs::recursive_directory_iterator at(path, error), end; at != end; at.increment(error)) {
    visit(at->path(), at->path().lexically_relative(path).string());
  }
}

}  // namespace

Json snapshotTree(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error) ? stateOfTree(path).entries : describeEntry(path);
}

TreeState stateOfTree(const std::string& path) {
  TreeState state;
  forEachEntry(path, [&](const fs::path& entry, const std::string& name) {
    state.entries[name] = describeEntry(entry);
    state.identities[name] = identityOf(entry);
  });
  return state;
}

Json changesOf(const TreeState& before, const TreeState& now, bool identities) {
  Json changes = Json::object();
  for (const auto& [name, entry] : now.entries.items()) {
    const auto known = before.entries.find(name);
    const bool same = known != before.entries.end() && *known == entry &&
                      (!identities || before.identities.at(name) == now.identities.at(name));
    if (!same) {
      changes[name] = entry;
    }
  }
  for (const auto& [name, entry] : before.entries.items()) {
    if (!now.entries.contains(name)) {
      changes[name] = nullptr;
    }
  }
  return changes;
}

}  // namespace conformance
