#include "schema/schema.h"

#include <stdexcept>

#include "schema/schema_node.h"

namespace stitchkit {

namespace json = boost::json;

namespace {

constexpr std::string_view kReferencePrefix = "#/components/schemas/";

std::uint8_t typeBit(std::string_view name) {
  static const std::map<std::string_view, std::uint8_t> bits = {
      {"null", kNullType},     {"boolean", kBooleanType}, {"integer", kIntegerType}, {"number", kNumberType},
      {"string", kStringType}, {"array", kArrayType},     {"object", kObjectType},
  };
  const auto found = bits.find(name);
  if (found == bits.end()) {
    throw std::logic_error("schema: unknown type " + std::string(name));
  }
  return found->second;
}

bool isAnnotation(std::string_view key) {
  return key == "description" || key == "title" || key == "examples" || key == "$comment" || key == "deprecated" ||
         key.substr(0, 2) == "x-";
}

}  // namespace

std::uint8_t typeOf(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return kNullType;
    case json::kind::bool_:
      return kBooleanType;
    case json::kind::int64:
    case json::kind::uint64:
      return kIntegerType;
    case json::kind::double_:
      return kNumberType;
    case json::kind::string:
      return kStringType;
    case json::kind::array:
      return kArrayType;
    case json::kind::object:
      return kObjectType;
  }
  return 0;
}

struct SchemaCompiler {
  SchemaSet& set;
  SchemaNode& node;

  void types(const json::value& value) {
    if (const auto* list = value.if_array()) {
      for (const json::value& name : *list) {
        node.types |= typeBit(view(name.as_string()));
      }
    } else {
      node.types = typeBit(view(value.as_string()));
    }
  }

  void properties(const json::value& value) {
    for (const auto& member : value.as_object()) {
      node.properties.emplace(std::string(member.key()), &set.compile(member.value()));
    }
  }

  void additional(const json::value& value) {
    if (value.is_bool()) {
      node.closed = !value.get_bool();
    } else {
      node.additional = &set.compile(value);
    }
  }

  void alternatives(const json::value& value) {
    for (const json::value& branch : value.as_array()) {
      node.alternatives.push_back(&set.compile(branch));
    }
  }

  void enumeration(const json::value& value) { node.allowed.assign(value.as_array().begin(), value.as_array().end()); }

  void requiredNames(const json::value& value) {
    for (const json::value& name : value.as_array()) {
      node.required.emplace_back(view(name.as_string()));
    }
  }

  // enum and const imply types, which lets a union of forms be told apart by type.
  void impliedTypes() {
    for (const json::value& value : node.allowed) {
      node.types |= typeOf(value);
    }
  }

  void pattern(const json::value& value) {
    re2::RE2::Options options;
    options.set_log_errors(false);
    node.pattern = std::make_unique<re2::RE2>(std::string(view(value.as_string())), options);
    if (!node.pattern->ok()) {
      throw std::logic_error("schema: bad pattern " + node.pattern->pattern());
    }
  }

  bool bounds(std::string_view key, const json::value& value) {
    if (key == "minimum") {
      node.minimum = value.to_number<double>();
    } else if (key == "exclusiveMinimum") {
      node.exclusiveMinimum = value.to_number<double>();
    } else if (key == "maximum") {
      node.maximum = value.to_number<double>();
    } else if (key == "minLength" || key == "minItems" || key == "minProperties") {
      node.minSize = value.to_number<std::size_t>();
    } else if (key == "maxLength" || key == "maxItems" || key == "maxProperties") {
      node.maxSize = value.to_number<std::size_t>();
    } else {
      return false;
    }
    return true;
  }

  void keyword(std::string_view key, const json::value& value) {
    using Compile = void (SchemaCompiler::*)(const json::value&);
    static const std::map<std::string_view, Compile> keywords = {
        {"type", &SchemaCompiler::types},
        {"properties", &SchemaCompiler::properties},
        {"additionalProperties", &SchemaCompiler::additional},
        {"required", &SchemaCompiler::requiredNames},
        {"enum", &SchemaCompiler::enumeration},
        {"pattern", &SchemaCompiler::pattern},
    };
    if (const auto found = keywords.find(key); found != keywords.end()) {
      (this->*found->second)(value);
    } else if (key == "items") {
      node.items = &set.compile(value);
    } else if (key == "const") {
      node.allowed = {value};
    } else if (key == "oneOf" || key == "anyOf") {
      node.exactlyOne = key == "oneOf";
      alternatives(value);
    } else if (key == "default") {
      node.defaultValue = value;
    } else if (!isAnnotation(key) && !bounds(key, value)) {
      throw std::logic_error("schema: keyword " + std::string(key) + " is not understood");
    }
  }
};

SchemaSet::SchemaSet(const json::object& components) : components_(components) {}
SchemaSet::~SchemaSet() = default;

const SchemaNode& SchemaSet::compile(const json::value& schema) {
  const json::object& object = schema.as_object();
  std::string name;
  if (const json::value* reference = object.if_contains("$ref")) {
    const std::string_view target = view(reference->as_string());
    if (object.size() != 1 || target.substr(0, kReferencePrefix.size()) != kReferencePrefix) {
      throw std::logic_error("schema: a $ref stands alone and names a component schema");
    }
    name = target.substr(kReferencePrefix.size());
    if (const auto known = references_.find(name); known != references_.end()) {
      return *known->second;
    }
  }
  nodes_.push_back(std::make_unique<SchemaNode>());
  SchemaNode& node = *nodes_.back();
  const json::object* body = &object;
  if (!name.empty()) {
    references_.emplace(name, &node);  // before its members: a schema may refer to itself
    body = &components_.at(name).as_object();
  }
  SchemaCompiler compiler{*this, node};
  for (const auto& member : *body) {
    if (member.key() == "$ref") {
      throw std::logic_error("schema: a component schema is not a mere reference: " + name);
    }
    compiler.keyword(std::string_view(member.key().data(), member.key().size()), member.value());
  }
  if (node.types == 0) {
    compiler.impliedTypes();
  }
  return node;
}

}  // namespace stitchkit
