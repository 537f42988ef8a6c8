// A state directory for the tests of the storage.
#pragma once

#include "backend/storage/layout.h"
#include "backend/storage/session_store.h"
#include "backend/storage/template_store.h"
#include "tests/codingtools/test_files.h"

#include <atomic>
#include <set>
#include <string>
#include <vector>

namespace stitchkit::test {

inline const std::vector<TemplateFile> kFiles{{"a.txt", "hello"}, {"d/b.bin", std::string("\0\1\2\377", 4)}};

struct StateDirectory {
  TemporaryDirectory base;

  [[nodiscard]] Layout layout() const { return {base / "state", "bubblewrap"}; }
  [[nodiscard]] std::string area(const std::string& name) const { return layout().namespaceDirectory() + '/' + name; }
  [[nodiscard]] std::string templatePath(const std::string& key) const { return area("templates") + '/' + key; }
  [[nodiscard]] std::string sessionPath(const std::string& id) const { return area("sessions") + '/' + id; }
  [[nodiscard]] bool stagingIsEmpty() const { return listed(area("staging")).empty(); }

  /// The names in a directory; none when it does not exist.
  static std::set<std::string> listed(const std::string& directory) {
    std::set<std::string> found;
    if (exists(directory)) {
      for (const auto& entry : std::filesystem::directory_iterator(directory)) {
        found.insert(entry.path().filename());
      }
    }
    return found;
  }
};

using Names = std::set<std::string>;

}  // namespace stitchkit::test
