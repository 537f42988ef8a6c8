#include "conformance/matcher.h"

#include <re2/re2.h>

#include <map>
#include <vector>

#include "conformance/bytes.h"

namespace conformance {
namespace {

using Problem = std::optional<std::string>;

Problem compare(const Json& expected, const Json& actual, const std::string& where);

std::string differs(const std::string& where, const std::string& expected, const Json& actual) {
  return (where.empty() ? "/" : where) + ": expected " + expected + ", came " + show(actual, 300);
}

bool isMatcher(const Json& value) {
  return value.is_object() && value.size() == 1 && value.begin().key().starts_with("$");
}

bool expectsAbsence(const Json& value) {
  return isMatcher(value) && value.contains("$absent");
}

Problem compareMembers(const Json& expected, const Json& actual, const std::string& where) {
  if (!actual.is_object()) {
    return differs(where, "an object", actual);
  }
  for (const auto& [name, value] : expected.items()) {
    const std::string at = where + "/" + name;
    const auto found = actual.find(name);
    if (expectsAbsence(value)) {
      if (found != actual.end()) {
        return differs(at, "nothing", *found);
      }
    } else if (found == actual.end()) {
      return at + ": expected " + show(value, 300) + ", came nothing";
    } else if (Problem problem = compare(value, *found, at)) {
      return problem;
    }
  }
  return std::nullopt;
}

Problem compareObject(const Json& expected, const Json& actual, const std::string& where) {
  if (Problem problem = compareMembers(expected, actual, where)) {
    return problem;
  }
  for (const auto& [name, value] : actual.items()) {
    if (!expected.contains(name)) {
      return differs(where + "/" + name, "no such member", value);
    }
  }
  return std::nullopt;
}

Problem compareArray(const Json& expected, const Json& actual, const std::string& where) {
  if (!actual.is_array() || actual.size() != expected.size()) {
    return differs(where, "the array " + show(expected, 300), actual);
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (Problem problem = compare(expected[i], actual[i], where + "/" + std::to_string(i))) {
      return problem;
    }
  }
  return std::nullopt;
}

/// Each expected element takes one element of its own. Greedy: put the stricter matchers first.
Problem compareUnordered(const Json& expected, const Json& actual, const std::string& where) {
  if (!actual.is_array() || actual.size() != expected.size()) {
    return differs(where, "an array of " + std::to_string(expected.size()) + " in any order", actual);
  }
  std::vector<bool> taken(actual.size(), false);
  for (const auto& wanted : expected) {
    bool found = false;
    for (std::size_t i = 0; i < actual.size() && !found; ++i) {
      found = !taken[i] && !compare(wanted, actual[i], where);
      taken[i] = taken[i] || found;
    }
    if (!found) {
      return differs(where, "an element " + show(wanted, 300), actual);
    }
  }
  return std::nullopt;
}

Problem matchType(const Json& wanted, const Json& actual, const std::string& where) {
  const auto name = wanted.get<std::string>();
  const bool fits = (name == "string" && actual.is_string()) || (name == "integer" && actual.is_number_integer()) ||
                    (name == "number" && actual.is_number()) || (name == "boolean" && actual.is_boolean()) ||
                    (name == "null" && actual.is_null()) || (name == "object" && actual.is_object()) ||
                    (name == "array" && actual.is_array());
  return fits ? Problem() : differs(where, "a value of type " + name, actual);
}

Problem matchPattern(const Json& wanted, const Json& actual, const std::string& where) {
  RE2::Options options;
  options.set_log_errors(false);
  options.set_dot_nl(true);
  const RE2 pattern(wanted.get<std::string>(), options);
  if (!pattern.ok()) {
    return "the case has a wrong pattern: " + pattern.error();
  }
  const bool fits = actual.is_string() && RE2::PartialMatch(actual.get_ref<const std::string&>(), pattern);
  return fits ? Problem() : differs(where, "text that matches " + wanted.dump(), actual);
}

Problem matchText(const Json& wanted, const Json& actual, const std::string& where) {
  const auto bytes = actual.is_string() ? decodeBase64(actual.get_ref<const std::string&>()) : std::nullopt;
  if (!bytes) {
    return differs(where, "base64", actual);
  }
  return compare(wanted, Json(*bytes), where + " decoded");
}

Problem matchContains(const Json& wanted, const Json& actual, const std::string& where) {
  if (actual.is_string() && wanted.is_string()) {
    const bool fits =
        actual.get_ref<const std::string&>().find(wanted.get_ref<const std::string&>()) != std::string::npos;
    return fits ? Problem() : differs(where, "text that holds " + show(wanted, 300), actual);
  }
  if (actual.is_array()) {
    for (const auto& element : actual) {
      if (!compare(wanted, element, where)) {
        return std::nullopt;
      }
    }
  }
  return differs(where, "something that contains " + show(wanted, 300), actual);
}

Problem matchSize(const Json& wanted, const Json& actual, const std::string& where) {
  const std::size_t size = actual.is_string() ? actual.get_ref<const std::string&>().size() : actual.size();
  if (!actual.is_string() && !actual.is_structured()) {
    return differs(where, "something with a size", actual);
  }
  return compare(wanted, Json(size), where + " size");
}

Problem matchOneOf(const Json& wanted, const Json& actual, const std::string& where) {
  for (const auto& choice : wanted) {
    if (!compare(choice, actual, where)) {
      return std::nullopt;
    }
  }
  return differs(where, "one of " + show(wanted, 300), actual);
}

Problem matchAll(const Json& wanted, const Json& actual, const std::string& where) {
  for (const auto& choice : wanted) {
    if (Problem problem = compare(choice, actual, where)) {
      return problem;
    }
  }
  return std::nullopt;
}

Problem matchEach(const Json& wanted, const Json& actual, const std::string& where) {
  if (!actual.is_array()) {
    return differs(where, "an array", actual);
  }
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (Problem problem = compare(wanted, actual[i], where + "/" + std::to_string(i))) {
      return problem;
    }
  }
  return std::nullopt;
}

Problem matchNot(const Json& wanted, const Json& actual, const std::string& where) {
  return compare(wanted, actual, where) ? Problem() : differs(where, "anything but " + show(wanted, 300), actual);
}

Problem matchNumber(const Json& wanted, const Json& actual, const std::string& where) {
  const bool fits = actual.is_number() && (!wanted.contains("min") || actual >= wanted["min"]) &&
                    (!wanted.contains("max") || actual <= wanted["max"]);
  return fits ? Problem() : differs(where, "a number in " + wanted.dump(), actual);
}

Problem matchSha256(const Json& wanted, const Json& actual, const std::string& where) {
  std::optional<std::string> bytes;
  if (wanted.is_string()) {
    bytes = wanted.get<std::string>();
  } else if (wanted.contains("text")) {
    bytes = wanted["text"].get<std::string>();
  } else if (wanted.contains("base64")) {
    bytes = decodeBase64(wanted["base64"].get<std::string>());
  }
  if (!bytes) {
    return "the case has a wrong $sha256";
  }
  return compare(Json(sha256Hex(*bytes)), actual, where);
}

Problem matchDigest(const Json& wanted, const Json& actual, const std::string& where) {
  const bool fits = actual.is_string() && sha256Hex(actual.get_ref<const std::string&>()) == wanted;
  return fits ? Problem() : differs(where, "text whose SHA-256 is " + show(wanted), actual);
}

Problem matchAny(const Json&, const Json&, const std::string&) {
  return std::nullopt;
}

Problem matchAbsent(const Json&, const Json& actual, const std::string& where) {
  return differs(where, "nothing", actual);
}

using Matcher = Problem (*)(const Json& wanted, const Json& actual, const std::string& where);

const std::map<std::string, Matcher>& matchers() {
  static const std::map<std::string, Matcher> table = {
      {"$absent", matchAbsent},   {"$all", matchAll},
      {"$any", matchAny},         {"$contains", matchContains},
      {"$digest", matchDigest},   {"$each", matchEach},
      {"$not", matchNot},         {"$number", matchNumber},
      {"$oneOf", matchOneOf},     {"$partial", compareMembers},
      {"$pattern", matchPattern}, {"$sha256", matchSha256},
      {"$size", matchSize},       {"$text", matchText},
      {"$type", matchType},       {"$unordered", compareUnordered},
  };
  return table;
}

Problem compare(const Json& expected, const Json& actual, const std::string& where) {
  if (isMatcher(expected)) {
    const auto found = matchers().find(expected.begin().key());
    if (found == matchers().end()) {
      return "the case has an unknown matcher: " + expected.begin().key();
    }
    return found->second(expected.begin().value(), actual, where);
  }
  if (expected.is_object()) {
    return compareObject(expected, actual, where);
  }
  if (expected.is_array()) {
    return compareArray(expected, actual, where);
  }
  // Numbers are compared by their text: the library takes -1 and 2^64 - 1 for equal, and 1 and 1.0.
  const bool same = expected.is_number() && actual.is_number() ? expected.dump() == actual.dump() : expected == actual;
  return same ? Problem() : differs(where, show(expected, 300), actual);
}

}  // namespace

Problem mismatch(const Json& expected, const Json& actual) {
  try {
    return compare(expected, actual, "");
  } catch (const Json::exception& error) {
    return std::string("the case has a misshapen matcher: ") + error.what();
  }
}

}  // namespace conformance
