// A JSON Schema compiled once and checked many times: the subset that openrpc.json uses (type, properties, required,
// additionalProperties, items, enum, const, bounds, pattern, oneOf, anyOf, $ref, default). A keyword outside the subset
// is a fault of the document and is refused when it is compiled, never ignored.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rpc/base/error.h"

namespace stitchkit {

struct SchemaNode;

/// Compiled schemas of one document; nodes refer to each other and live as long as it does. Immutable after the last
/// compile(), then thread-safe.
class SchemaSet {
 public:
  /// `components` is the object that `#/components/schemas/NAME` refers to.
  explicit SchemaSet(const boost::json::object& components);
  ~SchemaSet();
  SchemaSet(const SchemaSet&) = delete;
  SchemaSet& operator=(const SchemaSet&) = delete;

  /// Throws std::logic_error for a keyword that is not understood: the document is part of the program.
  const SchemaNode& compile(const boost::json::value& schema);

 private:
  friend struct SchemaCompiler;
  const boost::json::object& components_;
  std::vector<std::unique_ptr<SchemaNode>> nodes_;
  std::unordered_map<std::string, const SchemaNode*> references_;
};

/// Appends what is wrong with `value` to `issues` (at most 32). Fills in members that are missing and have a default,
/// and turns integral numbers (5.0) into integers, so that what passes can be decoded without asking again.
/// @param path names `value` in the issues: "" for the whole, else `command.args.0`.
void checkAgainst(const SchemaNode& schema, boost::json::value& value, const std::string& path,
                  std::vector<ValidationIssue>& issues);

}  // namespace stitchkit
