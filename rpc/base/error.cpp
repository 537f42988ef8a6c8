#include "rpc/base/error.h"

#include <cstring>
#include <stdexcept>

namespace stitchkit {

void throw_exception_from_error(const Error& error, const boost::source_location& where) {
  throw std::logic_error("unchecked error: " + error.message + " (" + where.to_string() + ")");
}

std::string errnoName(int number) {
  const char* name = ::strerrorname_np(number);
  return name != nullptr ? std::string(name) : "E" + std::to_string(number);
}

Error internalError(std::string publicMessage, std::string_view operation, int errnoNumber) {
  return Error(ErrorKind::kInternal, std::move(publicMessage))
      .withPrivate(std::string(operation) + ": " + errnoName(errnoNumber));
}

Error pathError(std::string publicMessage, int errnoNumber) {
  return Error(ErrorKind::kPath, std::move(publicMessage))
      .withDetail("errno", errnoName(errnoNumber))
      .withErrno(errnoNumber);
}

}  // namespace stitchkit
