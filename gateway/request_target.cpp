#include "gateway/request_target.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "gateway/header_fields.h"

namespace stitchkit {
namespace {

bool isHexDigit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool escapesAreWhole(std::string_view text) {
  for (std::size_t at = text.find('%'); at != std::string_view::npos; at = text.find('%', at + 1)) {
    if (at + 2 >= text.size() || !isHexDigit(text[at + 1]) || !isHexDigit(text[at + 2])) {
      return false;
    }
  }
  return true;
}

// Takes a dot, plain or as `%2e`, from the front.
bool takeDot(std::string_view& text) {
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    return true;
  }
  if (text.size() >= 3 && text[0] == '%' && text[1] == '2' && (text[2] | ' ') == 'e') {
    text.remove_prefix(3);
    return true;
  }
  return false;
}

// 1 for `.`, 2 for `..`, in any encoding; 0 for other segments. `rest` is what follows the dots.
int leadingDots(std::string_view segment, std::string_view& rest) {
  int dots = 0;
  while (dots < 3 && takeDot(segment)) {
    ++dots;
  }
  rest = segment;
  return dots;
}

std::string encoded(std::string_view text, std::string_view unsafe) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (unsafe.find(c) == std::string_view::npos) {
      out += c;
    } else {
      out += '%';
      out += kDigits[static_cast<unsigned char>(c) >> 4U];
      out += kDigits[static_cast<unsigned char>(c) & 15U];
    }
  }
  return out;
}

// Calls `each(segment, isLast)` for what stands between the slashes of a path that begins with one.
template <class Each>
void forEachSegment(std::string_view path, Each each) {
  path.remove_prefix(1);
  while (true) {
    const std::size_t end = path.find('/');
    each(path.substr(0, end), end == std::string_view::npos);
    if (end == std::string_view::npos) {
      return;
    }
    path.remove_prefix(end + 1);
  }
}

std::string withoutDotSegments(std::string_view path) {
  std::vector<std::string_view> kept;
  forEachSegment(path, [&](std::string_view segment, bool last) {
    std::string_view rest;
    const int dots = leadingDots(segment, rest);
    if (!rest.empty() || dots == 0 || dots > 2) {
      kept.push_back(segment);
      return;
    }
    if (dots == 2 && !kept.empty()) {
      kept.pop_back();
    }
    if (last) {
      kept.emplace_back();
    }
  });
  std::string out;
  for (const std::string_view segment : kept) {
    out += '/';
    out += segment;
  }
  return out;
}

}  // namespace

void throw_exception_from_error(const TargetFault& /*fault*/, const boost::source_location& where) {
  throw std::logic_error("a target's value was taken without a test at " + where.to_string());
}

boost::system::result<RequestTarget, TargetFault> parseRequestTarget(std::string_view target) {
  const auto outside = [](char c) { return c <= ' ' || c >= '\x7f' || c == '#'; };
  if (target.empty() || std::any_of(target.begin(), target.end(), outside)) {
    return TargetFault::kMalformed;
  }
  const std::string_view path = target.substr(0, target.find('?'));
  if (!path.starts_with('/') || path.starts_with("//")) {
    return TargetFault::kNotOriginForm;
  }
  if (path.find('\\') != std::string_view::npos) {
    return TargetFault::kBackslash;
  }
  if (!escapesAreWhole(path)) {
    return TargetFault::kMalformed;
  }
  RequestTarget parsed;
  parsed.path = encoded(withoutDotSegments(path), "\"<>`{}");
  if (parsed.path.starts_with("//")) {
    return TargetFault::kNotOriginForm;
  }
  parsed.query = encoded(target.substr(path.size()), "\"<>");
  return parsed;
}

bool pathIsAmbiguous(std::string_view path) {
  const std::string folded = lowerCaseAscii(path);
  for (const std::string_view hidden : {"%2f", "%5c", "%00"}) {
    if (folded.find(hidden) != std::string::npos) {
      return true;
    }
  }
  bool found = false;
  forEachSegment(folded, [&](std::string_view segment, bool) {
    std::string_view rest;
    found = found || (leadingDots(segment, rest) > 0 && (rest.starts_with(';') || rest.starts_with("%3b")));
  });
  return found;
}

}  // namespace stitchkit
