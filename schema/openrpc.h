// The document that says what the sidecar speaks: embedded in the binary, answered by rpc.discover, and the source of
// parameter validation and defaults.
#pragma once

#include <boost/json/object.hpp>

#include <map>
#include <string>
#include <string_view>

#include "rpc/base/error.h"
#include "schema/schema.h"

namespace stitchkit {

/// One per process, made at first use; thread-safe afterwards.
class OpenRpc {
 public:
  static const OpenRpc& instance();

  [[nodiscard]] const boost::json::object& document() const { return document_; }
  [[nodiscard]] bool hasMethod(std::string_view name) const;

  /// Checks the parameters of a call and fills in defaults. VALIDATION_ERROR with `details.issues` when they do not
  /// fit.
  /// @param params an object, or null for none; an array (by position) is refused.
  Result<boost::json::object> checkParams(std::string_view method, boost::json::value params) const;

 private:
  OpenRpc();

  boost::json::object document_;
  SchemaSet schemas_;
  std::map<std::string, const SchemaNode*, std::less<>> params_;
};

}  // namespace stitchkit
