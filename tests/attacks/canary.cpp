#include "tests/attacks/canary.h"

#include <sys/stat.h>

#include <filesystem>

namespace stitchkit::testing {

namespace fs = std::filesystem;

Canary::Canary() : text_("CANARY-" + uniqueDigits()), name_("secret-" + uniqueDigits()) {
  fs::create_directory(folder_ / "sub");
  for (const std::string& folder : {folder_.path(), folder_ / "sub"}) {
    fs::permissions(folder, fs::perms::all);
  }
  for (const std::string& name : {std::string("file"), std::string("sub/file"), name_}) {
    writeFile(folder_ / name, text_);
    fs::permissions(folder_ / name, static_cast<fs::perms>(0666));
  }
  before_ = now();
}

std::string Canary::relativePath() const {
  std::string up = "..";
  for (int level = 0; level < 30; ++level) {
    up += "/..";
  }
  return up + path();
}

bool Canary::shownBy(std::string_view answer) const {
  for (const std::string& trace : {text_, name_, path()}) {
    if (answer.find(trace) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

std::map<std::string, std::string> Canary::now() const {
  std::map<std::string, std::string> content;
  for (const auto& entry : fs::recursive_directory_iterator(path())) {
    content[entry.path()] = entry.is_regular_file() ? readFile(entry.path()) : "";
  }
  return content;
}

}  // namespace stitchkit::testing
