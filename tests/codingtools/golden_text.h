// The long texts of golden cases.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace stitchkit::test {

/// `{"$repeat": [unit, n, tail]}`, in file contents `{"repeat": ...}`, and the tail may be missing: written out.
inline std::string expand(const nlohmann::json& value) {
  if (value.is_string()) {
    return value.get<std::string>();
  }
  const nlohmann::json& repeat = value.contains("$repeat") ? value["$repeat"] : value["repeat"];
  std::string text;
  for (int count = repeat.at(1).get<int>(); count > 0; --count) {
    text += repeat.at(0).get<std::string>();
  }
  return text + (repeat.size() > 2 ? repeat.at(2).get<std::string>() : "");
}

}  // namespace stitchkit::test
