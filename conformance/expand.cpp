#include "conformance/expand.h"

#include "conformance/bytes.h"

namespace conformance {
namespace {

using Problem = std::optional<std::string>;

Problem expandString(Json& value, const Variables& variables) {
  const auto text = value.get<std::string>();
  std::string made;
  std::size_t at = 0;
  for (;;) {
    const std::size_t open = text.find("${", at);
    const std::size_t close = open == std::string::npos ? open : text.find('}', open);
    if (close == std::string::npos) {
      made.append(text, at);
      break;
    }
    const std::string name = text.substr(open + 2, close - open - 2);
    const auto found = variables.find(name);
    if (found == variables.end()) {
      return "nothing was captured as " + name;
    }
    if (open == 0 && close + 1 == text.size()) {
      value = found->second;
      return std::nullopt;
    }
    made.append(text, at, open - at);
    made += found->second.is_string() ? found->second.get<std::string>() : found->second.dump();
    at = close + 1;
  }
  value = std::move(made);
  return std::nullopt;
}

Problem repeat(Json& value, const Json& input) {
  if (!input.is_array() || input.size() != 2 || !input[0].is_string() || !input[1].is_number_unsigned()) {
    return "$repeat takes [text, count]";
  }
  const auto unit = input[0].get<std::string>();
  const auto count = input[1].get<std::size_t>();
  std::string made;
  made.reserve(unit.size() * count);
  for (std::size_t i = 0; i < count; ++i) {
    made += unit;
  }
  value = std::move(made);
  return std::nullopt;
}

Problem fill(Json& value, const Json& input) {
  if (!input.is_array() || input.size() != 2 || !input[1].is_number_unsigned()) {
    return "$fill takes [value, count]";
  }
  value = Json::array_t(input[1].get<std::size_t>(), input[0]);
  return std::nullopt;
}

Problem concat(Json& value, const Json& input) {
  std::string made;
  for (const auto& part : input) {
    if (!part.is_string()) {
      return "$concat takes texts";
    }
    made += part.get_ref<const std::string&>();
  }
  value = std::move(made);
  return std::nullopt;
}

Problem base64(Json& value, const Json& input) {
  if (!input.is_string()) {
    return "$base64 takes a text";
  }
  value = encodeBase64(input.get_ref<const std::string&>());
  return std::nullopt;
}

Problem expandNames(Json& value, const Variables& variables) {
  Json made = Json::object();
  for (auto& [name, member] : value.items()) {
    Json key = name;
    if (Problem problem = expandString(key, variables)) {
      return problem;
    }
    made[key.is_string() ? key.get<std::string>() : key.dump()] = std::move(member);
  }
  value = std::move(made);
  return std::nullopt;
}

}  // namespace

Problem expand(Json& value, const Variables& variables) {
  if (value.is_string()) {
    return expandString(value, variables);
  }
  if (!value.is_structured()) {
    return std::nullopt;
  }
  for (auto& member : value) {
    if (Problem problem = expand(member, variables)) {
      return problem;
    }
  }
  if (!value.is_object()) {
    return std::nullopt;
  }
  if (value.size() == 1) {
    const std::string name = value.begin().key();
    const Json input = name.starts_with("$") ? value.begin().value() : Json();
    if (name == "$repeat") {
      return repeat(value, input);
    }
    if (name == "$fill") {
      return fill(value, input);
    }
    if (name == "$concat") {
      return concat(value, input);
    }
    if (name == "$base64") {
      return base64(value, input);
    }
  }
  return expandNames(value, variables);
}

}  // namespace conformance
