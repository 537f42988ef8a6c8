// Folders below /tmp that go away with their owner, and other one-line helpers on files.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace stitchkit::testing {

/// The ordinary user that tests run things as when they are root themselves.
inline constexpr uid_t kOrdinaryUid = 65534;

/// A new folder /tmp/stitchkit-test-XXXXXX, mode 0755, removed with everything below at the end. Throws when it cannot
/// be made.
class ScratchFolder {
 public:
  /// `owner`: the user it is given to (only root can give it to another).
  explicit ScratchFolder(std::optional<uid_t> owner = std::nullopt);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

void writeFile(const std::string& path, std::string_view text, mode_t mode = 0644);
std::string readFile(const std::string& path);

/// A number that no other test uses, as digits.
std::string uniqueDigits();

}  // namespace stitchkit::testing
