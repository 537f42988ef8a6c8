#include "backend/launch/support_sources.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <memory>
#include <optional>
#include <string_view>

namespace stitchkit {
namespace {

// Files, links, or whole trees, as the distributions have them; parents are made as needed. Directories with private
// keys (/etc/ssl/private, /etc/pki/tls/private) are not among them.
constexpr const char* kRoots[] = {
    "/etc/alternatives",
    "/etc/ca-certificates/extracted",
    "/etc/crypto-policies/back-ends",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/pki/ca-trust/extracted",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
};
// The manual pages of alternatives: several hundred on a machine with many compilers, and nothing runs by them.
constexpr std::string_view kManualPageEnd = ".gz";
constexpr std::string_view kAlternatives = "/etc/alternatives";
// Below a root; a certificate store is two or three levels deep.
constexpr int kMaxDepth = 8;

std::string versionOf(const struct stat& status) {
  return std::to_string(status.st_size) + ' ' + std::to_string(status.st_ino) + ' ' +
         std::to_string(status.st_mtim.tv_sec) + '.' + std::to_string(status.st_mtim.tv_nsec) + ' ' +
         std::to_string(status.st_ctim.tv_sec) + '.' + std::to_string(status.st_ctim.tv_nsec);
}

std::optional<SupportSource> sourceAt(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    return std::nullopt;
  }
  SupportSource source;
  source.path = path;
  if (S_ISLNK(status.st_mode)) {
    char target[PATH_MAX];
    const ssize_t size = ::readlink(path.c_str(), target, sizeof target);
    if (size <= 0) {
      return std::nullopt;
    }
    source.kind = SupportSource::Kind::kSymlink;
    source.linkTarget.assign(target, static_cast<std::size_t>(size));
    return source;
  }
  if ((status.st_mode & S_IROTH) == 0) {
    return std::nullopt;
  }
  if (S_ISDIR(status.st_mode)) {
    source.kind = SupportSource::Kind::kDirectory;
    return source;
  }
  source.version = versionOf(status);
  return S_ISREG(status.st_mode) ? std::optional(source) : std::nullopt;
}

std::vector<std::string> namesIn(const std::string& directory) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(directory.c_str()), &::closedir);
  while (stream != nullptr) {
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) {
      break;
    }
    std::string name = static_cast<const char*>(entry->d_name);
    const bool manualPage = directory == kAlternatives && name.ends_with(kManualPageEnd);
    if (name != "." && name != ".." && !manualPage) {
      names.push_back(std::move(name));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

void listTree(const std::string& path, int depth, std::vector<SupportSource>& sources) {
  std::optional<SupportSource> source = sourceAt(path);
  if (!source) {
    return;
  }
  const bool descend = source->kind == SupportSource::Kind::kDirectory && depth < kMaxDepth;
  sources.push_back(std::move(*source));
  if (descend) {
    for (const std::string& name : namesIn(path)) {
      listTree(path + '/' + name, depth + 1, sources);
    }
  }
}

}  // namespace

std::vector<SupportSource> listSupportSources() {
  std::vector<SupportSource> sources;
  for (const char* root : kRoots) {
    listTree(root, 0, sources);
  }
  return sources;
}

std::string supportSourcesStamp(const std::vector<SupportSource>& sources) {
  std::string stamp;
  const auto add = [&stamp](const char* path) {
    struct stat status {};
    stamp += ::lstat(path, &status) == 0 ? versionOf(status) : std::string("none");
    stamp += '\n';
  };
  for (const char* root : kRoots) {
    add(root);
  }
  for (const SupportSource& source : sources) {
    if (source.kind == SupportSource::Kind::kDirectory) {
      add(source.path.c_str());
    }
  }
  return stamp;
}

}  // namespace stitchkit
