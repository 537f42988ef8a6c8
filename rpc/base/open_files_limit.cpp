#include "rpc/base/open_files_limit.h"

#include <sys/resource.h>

#include <algorithm>

#include "rpc/base/limits.h"

namespace stitchkit {

std::optional<std::uint64_t> raiseOpenFilesLimit() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) {
    return std::nullopt;
  }
  const rlim_t former = files.rlim_cur;
  files.rlim_cur = std::max(former, std::min<rlim_t>(files.rlim_max, limits::kOpenFiles));
  ::setrlimit(RLIMIT_NOFILE, &files);
  return files.rlim_cur < limits::kLeastOpenFiles ? std::nullopt : std::optional<std::uint64_t>(former);
}

}  // namespace stitchkit
