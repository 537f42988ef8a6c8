#include "backend/storage/template_store.h"

#include "backend/storage/files.h"
#include "backend/storage/json_text.h"
#include "backend/storage/staging.h"
#include "codingtools/file_error.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>
#include <unordered_set>

namespace stitchkit {

namespace {

constexpr std::size_t kReadyBytes = 64UL * 1024;
constexpr const char* kBuiltTemplate = "template";
constexpr const char* kReplaced = "replaced";
/// How often a template may change between looking at it and replacing it.
constexpr int kMaxPublishAttempts = 100;

StringMembers readyMembers(const Layout& layout, const std::string& key) {
  return {{"backend", layout.backendName()}, {"templateKey", key}};
}

/// The data directory of a whole template; nullopt when it is missing or not whole.
Result<std::optional<UniqueFd>> openWhole(const Layout& layout, int templates, const std::string& key) {
  Result<std::optional<UniqueFd>> place = openDirectory(templates, key.c_str());
  if (!place || !*place) {
    return place;
  }
  const Result<std::optional<std::string>> ready = readSmallFile((*place)->get(), "ready", kReadyBytes);
  if (!ready) {
    return ready.error();
  }
  if (!*ready || !isStringObject(**ready, readyMembers(layout, key))) {
    return std::optional<UniqueFd>();
  }
  return openDirectory((*place)->get(), "data");
}

/// Makes the directories above a file that are not in `made`, outermost first. 0 or errno.
int makeParents(int data, const std::string& relative, std::unordered_set<std::string>& made) {
  for (std::size_t slash = relative.find('/'); slash != std::string::npos; slash = relative.find('/', slash + 1)) {
    const std::string directory = relative.substr(0, slash);
    if (made.insert(directory).second && ::mkdirat(data, directory.c_str(), 0700) != 0) {
      return errno;
    }
  }
  return 0;
}

Result<void> buildData(int data, const TemplateFiles& files, const std::stop_token& stop) {
  std::unordered_set<std::string> made;
  for (const TemplateFiles::File& file : files.files) {
    if (stop.stop_requested()) {
      return fileWorkCancelled();
    }
    const std::string& relative = file.path.relative();
    if (const int error = makeParents(data, relative, made); error != 0) {
      return storageError(error, "mkdir in template");
    }
    if (Result<void> written = writeNewFile(data, relative.c_str(), file.content); !written) {
      return written;
    }
  }
  return {};
}

Result<void> build(const Layout& layout, int staging, const std::string& key, const TemplateFiles& files,
                   const std::stop_token& stop) {
  if (Result<void> made = makeDirectory(staging, kBuiltTemplate); !made) {
    return made;
  }
  Result<UniqueFd> place = openOrMakeDirectory(staging, kBuiltTemplate);
  if (!place) {
    return place.error();
  }
  Result<UniqueFd> data = openOrMakeDirectory(place->get(), "data");
  if (!data) {
    return data.error();
  }
  if (Result<void> built = buildData(data->get(), files, stop); !built) {
    return built;
  }
  return writeNewFile(place->get(), "ready", writeStringObject(readyMembers(layout, key)));
}

}  // namespace

Result<TemplateStore::Prewarmed> TemplateStore::prewarm(std::string_view templateName,
                                                        const std::vector<TemplateFile>& files,
                                                        const std::stop_token& stop) const {
  const Result<TemplateFiles> arranged = arrangeTemplate(files);
  if (!arranged) {
    return arranged.error();
  }
  const std::string key = templateKey(layout_.backendName(), templateName, *arranged);
  if (open(key)) {
    return Prewarmed{true, key};
  }
  Result<StagingEntry> staging = StagingEntry::make(layout_);
  if (!staging) {
    return staging.error();
  }
  if (Result<void> built = build(layout_, staging->descriptor(), key, *arranged, stop); !built) {
    return built.error();
  }
  const Result<bool> published = publish(staging->descriptor(), key);
  if (!published) {
    return published.error();
  }
  return Prewarmed{!*published, key};
}

/// Whether ours was published; false when somebody else's whole template was there first. What was replaced lies in
/// the staging directory then, and goes with it.
Result<bool> TemplateStore::publish(int staging, const std::string& key) const {
  Result<UniqueFd> templates = layout_.openOrMake(Layout::Area::kTemplates);
  if (!templates) {
    return templates.error();
  }
  if (const int error = durability_.settleTree(staging); error != 0) {
    return storageError(error, "sync template");
  }
  const auto settled = [&]() -> Result<bool> {
    const int error = durability_.settleEntries(templates->get(), staging);
    return error == 0 ? Result<bool>(true) : storageError(error, "sync templates");
  };
  for (int attempt = 0; attempt < kMaxPublishAttempts; ++attempt) {
    int error = renameNew(staging, kBuiltTemplate, templates->get(), key.c_str());
    if (error == 0) {
      return settled();
    }
    if (error != EEXIST) {
      return storageError(error, "publish template");
    }
    const Result<std::optional<UniqueFd>> other = openWhole(layout_, templates->get(), key);
    if (!other) {
      return other.error();
    }
    if (*other) {
      return false;
    }
    error = ::renameat2(staging, kBuiltTemplate, templates->get(), key.c_str(), RENAME_EXCHANGE) == 0 ? 0 : errno;
    if (error == 0) {
      return settled();
    }
    if (error == EINVAL || error == ENOSYS) {
      // A file system that cannot exchange: the old one goes first, and for a moment there is none.
      error = renameNew(templates->get(), key.c_str(), staging, kReplaced);
    }
    if (error != 0 && error != ENOENT) {
      return storageError(error, "replace template");
    }
  }
  return storageError(EBUSY, "publish template");
}

Result<UniqueFd> TemplateStore::open(const std::string& templateKey) const {
  const auto unknown = [] {
    return Error(ErrorKind::kStateMismatch, "There is no such template")
        .withHint("Prewarm the template first, under the same backend name and state directory.");
  };
  Result<std::optional<UniqueFd>> templates = layout_.open(Layout::Area::kTemplates);
  if (!templates) {
    return templates.error();
  }
  if (!*templates || !isHexName(templateKey)) {
    return unknown();
  }
  Result<std::optional<UniqueFd>> data = openWhole(layout_, (*templates)->get(), templateKey);
  if (!data) {
    return data.error();
  }
  if (!*data) {
    return unknown();
  }
  return std::move(**data);
}

}  // namespace stitchkit
