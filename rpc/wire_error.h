// Errors on the wire: the one table of numbers and names (PROTOCOL.md, 2), and the one place where an error becomes
// JSON.
#pragma once

#include <boost/json/object.hpp>

#include <string_view>

#include "rpc/base/error.h"

namespace stitchkit {

struct WireCode {
  int number;
  std::string_view name;  ///< `error.data.code`
};

WireCode wireCode(ErrorKind kind);

/// The error object of a response. A private detail goes to the log under a fresh correlation id, which
/// `data.incident` repeats; text that is not UTF-8 (a guest's file name) is made so.
boost::json::object toWireError(const Error& error);

}  // namespace stitchkit
