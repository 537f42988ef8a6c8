#include "backend/storage/template_key.h"

#include "backend/storage/json_text.h"
#include "codingtools/file_error.h"
#include "rpc/base/sha256.h"

#include <unicode/coll.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <set>

namespace stitchkit {

namespace {

/// The collator, made when a template first needs an order (it costs milliseconds and a megabyte). nullptr when ICU
/// has no data. Comparing is const and thread-safe.
const icu::Collator* rootCollator() {
  static const std::unique_ptr<const icu::Collator> kCollator = []() -> std::unique_ptr<const icu::Collator> {
    UErrorCode status = U_ZERO_ERROR;
    std::unique_ptr<icu::Collator> made(icu::Collator::createInstance(icu::Locale::getRoot(), status));
    if (U_SUCCESS(status)) {
      made->setAttribute(UCOL_NORMALIZATION_MODE, UCOL_ON, status);
    }
    return U_SUCCESS(status) ? std::move(made) : nullptr;
  }();
  return kCollator.get();
}

Result<void> sortByPath(std::vector<TemplateFiles::File>& files) {
  if (files.size() < 2) {
    return {};
  }
  const icu::Collator* const collator = rootCollator();
  if (collator == nullptr) {
    return Error(ErrorKind::kInternal, "The order of the files could not be determined").withPrivate("ICU has no data");
  }
  std::sort(files.begin(), files.end(), [collator](const auto& left, const auto& right) {
    const std::string leftPath = left.path.canonical();
    const std::string rightPath = right.path.canonical();
    UErrorCode status = U_ZERO_ERROR;
    const UCollationResult order = collator->compareUTF8(leftPath, rightPath, status);
    return order != UCOL_EQUAL ? order == UCOL_LESS : leftPath < rightPath;
  });
  return {};
}

Error issue(const std::string& path, std::string message) {
  return Error(ErrorKind::kValidation, "The template's files contradict each other")
      .withDetail("issues", std::vector<ValidationIssue>{{"files." + path, std::move(message)}});
}

Result<WorkspacePath> filePath(const std::string& text) {
  Result<WorkspacePath> path = WorkspacePath::parse(text);
  if (path && path->isRoot()) {
    return Error(ErrorKind::kPath, "The path names the workspace itself, where a file is to be")
        .withHint("Name a file as dir/file or /workspace/dir/file.");
  }
  if (path && path->tooLong()) {
    return fileError(ENAMETOOLONG, "check");
  }
  return path;
}

}  // namespace

Result<TemplateFiles> arrangeTemplate(const std::vector<TemplateFile>& files) {
  TemplateFiles arranged;
  std::set<std::string> seen;
  for (const TemplateFile& file : files) {
    Result<WorkspacePath> path = filePath(file.path);
    if (!path) {
      return path.error();
    }
    if (!seen.insert(path->relative()).second) {
      return issue(file.path, "names a file that another member names as well");
    }
    arranged.files.push_back({std::move(*path), file.content});
  }
  for (const TemplateFiles::File& file : arranged.files) {
    for (WorkspacePath above = file.path.parent(); !above.isRoot(); above = above.parent()) {
      if (seen.count(above.relative()) != 0) {
        return issue(above.relative(), "is a file, and a directory of another file's path");
      }
    }
  }
  if (Result<void> sorted = sortByPath(arranged.files); !sorted) {
    return sorted.error();
  }
  return arranged;
}

std::string templateKey(std::string_view backendName, std::string_view templateName, const TemplateFiles& files) {
  std::string text = "[";
  appendJsonString(text, backendName);
  text += ',';
  appendJsonString(text, templateName);
  text += ",[";
  for (const TemplateFiles::File& file : files.files) {
    text += text.back() == '[' ? "[" : ",[";
    appendJsonString(text, file.path.canonical());
    text += ',';
    appendJsonString(text, sha256Hex(file.content));
    text += ']';
  }
  text += "]]";
  return sha256Hex(text);
}

}  // namespace stitchkit
