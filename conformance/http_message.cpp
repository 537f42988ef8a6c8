#include "conformance/http_message.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "conformance/bytes.h"

namespace conformance {
namespace {

using State = HttpParsed::State;

constexpr std::size_t kMostHead = 65536;
constexpr std::size_t kMostBody = 8U << 20U;
constexpr std::size_t kMostShown = 65536;
constexpr std::string_view kLineEnd = "\r\n";

HttpParsed wrong(std::string problem) {
  return {State::kWrong, std::move(problem), 0, {}};
}

bool isTokenByte(char byte) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         kOthers.find(byte) != std::string_view::npos;
}

bool isToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), isTokenByte);
}

bool hasControl(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char byte) {
    const auto code = static_cast<unsigned char>(byte);
    return (code < 0x20 && byte != '\t') || code == 0x7f;
  });
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  return begin == std::string_view::npos ? std::string_view()
                                         : text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::optional<std::size_t> number(std::string_view text, int base) {
  std::size_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// "" or what is wrong with the line.
std::string takeField(std::string_view line, HttpMessage& message) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !isToken(line.substr(0, colon)) || hasControl(line)) {
    return "a header line that is none: " + latin1(line.substr(0, 200));
  }
  std::string name(line.substr(0, colon));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char byte) { return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte + 32) : byte; });
  message.fields.emplace_back(std::move(name), trimmed(line.substr(colon + 1)));
  return "";
}

std::string takeRequestLine(std::string_view line, HttpMessage& message) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  const bool shaped = first != std::string_view::npos && last > first + 1 && isToken(line.substr(0, first)) &&
                      line.substr(last + 1) == "HTTP/1.1";
  message.method = line.substr(0, std::min(first, line.size()));
  message.target = shaped ? line.substr(first + 1, last - first - 1) : "";
  const bool clean = std::all_of(message.target.begin(), message.target.end(),
                                 [](char byte) { return static_cast<unsigned char>(byte) > 0x20 && byte != 0x7f; });
  return shaped && clean ? "" : "a request line that is none: " + latin1(line.substr(0, 200));
}

std::string takeStatusLine(std::string_view line, HttpMessage& message) {
  constexpr std::string_view kVersion = "HTTP/1.1 ";
  const auto status = line.size() >= 13 && line.starts_with(kVersion) && line[12] == ' '
                          ? number(line.substr(kVersion.size(), 3), 10)
                          : std::nullopt;
  if (!status || *status < 100 || *status > 999 || hasControl(line)) {
    return "a status line that is none: " + latin1(line.substr(0, 200));
  }
  message.status = static_cast<int>(*status);
  return "";
}

/// The head, without a body. kMore until its empty line has come.
HttpParsed parseHead(std::string_view bytes, std::string (*takeFirst)(std::string_view, HttpMessage&)) {
  if (!bytes.empty() && !isTokenByte(bytes[0])) {
    return wrong("a head that is none");  // TLS, say: an end of it would never come
  }
  const std::size_t end = bytes.substr(0, kMostHead).find("\r\n\r\n");
  if (end == std::string_view::npos) {
    return bytes.size() >= kMostHead ? wrong("a head of more than 64 KiB") : HttpParsed{};
  }
  HttpParsed parsed{State::kWhole, "", end + 4, {}};
  std::string_view rest = bytes.substr(0, end + 2);
  for (bool first = true; !rest.empty(); first = false) {
    const std::size_t lineEnd = rest.find(kLineEnd);
    const std::string_view line = rest.substr(0, lineEnd);
    const std::string problem = first ? takeFirst(line, parsed.message) : takeField(line, parsed.message);
    if (!problem.empty()) {
      return wrong(problem);
    }
    rest.remove_prefix(lineEnd + 2);
  }
  return parsed;
}

HttpParsed takeLength(HttpParsed head, std::string_view bytes, std::string_view text) {
  const auto length = number(text, 10);
  if (!length) {
    return wrong("a content-length that is no number: " + latin1(text));
  }
  if (*length > kMostBody) {
    return wrong("a body of more than 8 MiB");
  }
  if (bytes.size() - head.consumed < *length) {
    return {};
  }
  head.message.body = bytes.substr(head.consumed, *length);
  head.consumed += *length;
  return head;
}

HttpParsed takeChunks(HttpParsed head, std::string_view bytes) {
  for (;;) {
    const std::size_t lineEnd = bytes.find(kLineEnd, head.consumed);
    if (lineEnd == std::string_view::npos) {
      return bytes.size() - head.consumed > 64 ? wrong("a chunk size without an end") : HttpParsed{};
    }
    const auto size = number(bytes.substr(head.consumed, lineEnd - head.consumed), 16);
    if (!size || *size > kMostBody - head.message.body.size()) {
      return wrong("a chunk size that is no number, or too large");
    }
    const std::size_t begin = lineEnd + 2;
    if (bytes.size() < begin + *size + 2) {
      return {};
    }
    if (bytes.substr(begin + *size, 2) != kLineEnd) {
      return wrong(*size == 0 ? "trailers" : "a chunk that is longer than it says");
    }
    head.message.body.append(bytes, begin, *size);
    head.consumed = begin + *size + 2;
    if (*size == 0) {
      return head;
    }
  }
}

/// @param untilEnd  what a body without framing means
HttpParsed takeBody(HttpParsed head, std::string_view bytes, bool untilEnd, bool ended) {
  std::vector<std::string> lengths;
  std::vector<std::string> encodings;
  for (const auto& [name, value] : head.message.fields) {
    if (name == "content-length") {
      lengths.push_back(value);
    } else if (name == "transfer-encoding") {
      encodings.push_back(value);
    }
  }
  if (lengths.size() + encodings.size() > 1) {
    return wrong("two framings");
  }
  if (!encodings.empty()) {
    return encodings[0] == "chunked" ? takeChunks(std::move(head), bytes) : wrong("an unknown transfer-encoding");
  }
  if (!lengths.empty()) {
    return takeLength(std::move(head), bytes, lengths[0]);
  }
  if (untilEnd) {
    if (!ended) {
      return {};
    }
    head.message.body = bytes.substr(head.consumed);
    head.consumed = bytes.size();
  }
  return head;
}

}  // namespace

std::string HttpMessage::field(std::string_view name) const {
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const auto& one) { return one.first == name; });
  return found == fields.end() ? "" : found->second;
}

HttpParsed parseRequest(std::string_view bytes) {
  HttpParsed head = parseHead(bytes, takeRequestLine);
  return head.state == State::kWhole ? takeBody(std::move(head), bytes, false, false) : head;
}

HttpParsed parseReply(std::string_view bytes, bool ended, bool toHead) {
  HttpParsed head = parseHead(bytes, takeStatusLine);
  const int status = head.message.status;
  if (head.state != State::kWhole || toHead || status < 200 || status == 204 || status == 304) {
    return head;
  }
  return takeBody(std::move(head), bytes, true, ended);
}

std::string latin1(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    const auto code = static_cast<unsigned char>(byte);
    if (code < 0x80) {
      text += byte;
    } else {
      text += static_cast<char>(0xC0U | (code >> 6U));
      text += static_cast<char>(0x80U | (code & 0x3FU));
    }
  }
  return text;
}

Json describeBody(const std::string& body) {
  return body.size() <= kMostShown && isUtf8(body) ? Json(body)
                                                   : Json{{"bytes", body.size()}, {"sha256", sha256Hex(body)}};
}

Json describeFields(const HttpMessage& message) {
  Json list = Json::array();
  for (const auto& [name, value] : message.fields) {
    list.push_back(Json::array({name, latin1(value)}));
  }
  return list;
}

}  // namespace conformance
