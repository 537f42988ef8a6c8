// What of the host's /etc goes into the guest's: certificate roots, the loader's cache, the time zone, alternatives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stitchkit {

/// One file system object to copy. All are readable by everyone on the host; never a private key's directory.
struct SupportSource {
  enum class Kind : std::uint8_t { kDirectory, kFile, kSymlink };
  Kind kind = Kind::kFile;
  std::string path;        ///< on the host: "/etc/ssl/certs"; the same in the guest
  std::string linkTarget;  ///< kSymlink
  std::string version;     ///< changes when the object does
};

/// Looks at the host: parents before children, otherwise by name. What is not there is left out.
std::vector<SupportSource> listSupportSources();

/// The state of the directories among `sources` and of the places where sources are looked for, by one status each:
/// it changes when an entry is added, removed or replaced (not when a file inside is written over in place).
std::string supportSourcesStamp(const std::vector<SupportSource>& sources);

}  // namespace stitchkit
