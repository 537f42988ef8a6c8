#include "backend/diagnosis/program_facts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <system_error>

namespace stitchkit {

ProgramFacts lookAtProgram(const std::string& path) {
  ProgramFacts facts;
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    facts.error = errno;
    return facts;
  }
  if (!S_ISREG(status.st_mode)) {
    facts.error = EACCES;  // what exec says
  } else if (::faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) != 0) {
    facts.error = errno;
  }
  facts.setuid = (status.st_mode & S_ISUID) != 0;
  facts.capabilities = ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
  return facts;
}

std::optional<std::array<int, 3>> parseBubblewrapVersion(std::string_view line) {
  constexpr std::string_view kName = "bubblewrap ";
  if (!line.starts_with(kName)) {
    return std::nullopt;
  }
  std::array<int, 3> version{};
  const char* at = line.data() + kName.size();
  const char* const end = line.data() + line.size();
  std::size_t parts = 0;
  for (int& part : version) {
    const auto [rest, failure] = std::from_chars(at, end, part);
    if (failure != std::errc()) {
      break;
    }
    ++parts;
    if (rest == end || *rest != '.') {
      break;
    }
    at = rest + 1;
  }
  return parts >= 2 ? std::optional(version) : std::nullopt;
}

}  // namespace stitchkit
