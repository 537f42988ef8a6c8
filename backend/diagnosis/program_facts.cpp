#include "backend/diagnosis/program_facts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>

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

}  // namespace stitchkit
