// A template's content-addressed key.
#pragma once

#include "codingtools/workspace_path.h"
#include "rpc/base/error.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stitchkit {

/// A file as the host gives it: a path in either form of PROTOCOL.md, section 5, and its bytes.
struct TemplateFile {
  std::string path;
  std::string content;
};

/// The files of a template, checked and in order. Points into the TemplateFiles it was made from.
struct TemplateFiles {
  struct File {
    WorkspacePath path;
    std::string_view content;
  };
  std::vector<File> files;  ///< in the order of the key
};

/// Checks the paths and sorts. kPath for a path that is none, for the root, and (ENAMETOOLONG) for one that no file
/// system takes; kValidation for one file given twice, and for a file that is also a directory of another.
/// Order: ICU's root collation of the canonical paths, normalisation on, as JavaScript's localeCompare (FACTS.md, 6);
/// names that collate as equal by bytes, so that one set of files has one key.
Result<TemplateFiles> arrangeTemplate(const std::vector<TemplateFile>& files);

/// The key of PROTOCOL.md, section 4: 64 lower-case hex digits.
std::string templateKey(std::string_view backendName, std::string_view templateName, const TemplateFiles& files);

}  // namespace stitchkit
