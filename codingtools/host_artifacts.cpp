#include "codingtools/host_artifacts.h"

#include "codingtools/artifact_lines.h"
#include "codingtools/character_cut.h"
#include "rpc/base/base64.h"
#include "rpc/base/utf8.h"

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include <algorithm>

namespace stitchkit {

namespace json = boost::json;

namespace {

constexpr const char* kUnknownReference = "SPILL_REFERENCE_UNKNOWN";

Error hostFailed(const Error& cause, const std::string& reference) {
  if (cause.kind == ErrorKind::kCancelled) {
    return cause;
  }
  if (cause.reason == kUnknownReference && !reference.empty()) {
    return Error(ErrorKind::kSpillReferenceUnknown, "There is no such artifact")
        .withDetail("reference", reference)
        .withHint("Use a reference that run_command gave.");
  }
  return Error(ErrorKind::kInternal, "The host's store of artifacts failed")
      .withPrivate(cause.message + " " + cause.reason + " " + cause.privateDetail);
}

Error strangeArtifactAnswer() {
  return Error(ErrorKind::kInternal, "The host's store of artifacts failed")
      .withPrivate("its answer is of another shape, or more than was asked for");
}

const json::value* memberOf(const json::value& answer, const char* name) {
  const json::object* object = answer.if_object();
  return object != nullptr ? object->if_contains(name) : nullptr;
}

std::optional<std::string> textOf(const json::value* value) {
  if (value == nullptr || !value->is_string()) {
    return std::nullopt;
  }
  return std::string(value->get_string());
}

std::optional<std::int64_t> countOf(const json::value* value) {
  if (value == nullptr || !value->is_number()) {
    return std::nullopt;
  }
  boost::system::error_code error;
  const auto number = value->to_number<std::int64_t>(error);
  return error || number < 0 ? std::nullopt : std::optional(number);
}

bool isMultibyte(char byte) {
  return static_cast<unsigned char>(byte) >= 0x80;
}

/// Whether it begins inside a character, as far as its first byte can tell.
bool isInside(std::string_view bytes) {
  return !bytes.empty() && (static_cast<unsigned char>(bytes.front()) & 0xC0U) == 0x80;
}

}  // namespace

Result<json::value> HostArtifacts::ask(const char* method, json::object params, const std::stop_token& stop) const {
  params["toolset"] = toolset_;
  return host_.ask(method, std::move(params), stop);
}

Result<std::string> HostArtifacts::write(std::string_view content, const json::object& request,
                                         const std::stop_token& stop) const {
  const Result<json::value> answer =
      ask("host.artifacts.write",
          {{"mediaType", "text/plain; charset=utf-8"}, {"base64", encodeBase64(content)}, {"request", request}}, stop);
  if (!answer) {
    return hostFailed(answer.error(), {});
  }
  const std::optional<std::string> reference = textOf(memberOf(*answer, "reference"));
  return reference && !reference->empty() ? Result<std::string>(*reference) : strangeArtifactAnswer();
}

Result<std::optional<json::object>> HostArtifacts::authorization(const std::string& reference,
                                                                 const std::stop_token& stop) const {
  const Result<json::value> answer = ask("host.artifacts.authorization", {{"reference", reference}}, stop);
  if (!answer) {
    Error error = hostFailed(answer.error(), reference);
    error.kind = error.kind == ErrorKind::kInternal ? ErrorKind::kForbidden : error.kind;
    return error;
  }
  const json::value* request = memberOf(*answer, "request");
  if (!answer->is_object() || (request != nullptr && !request->is_object())) {
    Error error = strangeArtifactAnswer();
    error.kind = ErrorKind::kForbidden;
    return error;
  }
  return request != nullptr ? std::optional(request->get_object()) : std::nullopt;
}

// What the host allowed is what is read; only where that begins or ends inside a character, a few bytes around it as
// well.
Result<ArtifactWindow> HostArtifacts::read(const std::string& reference, std::uint64_t offset, std::size_t maxBytes,
                                           const std::stop_token& stop) const {
  ArtifactWindow window;
  window.offset = offset;
  Result<std::string> bytes = readBytes(reference, offset, maxBytes, window.totalBytes, stop);
  if (bytes && offset > 0 && isInside(*bytes)) {
    bytes = fromNextCharacter(reference, *bytes, maxBytes, window, stop);
  }
  if (bytes && bytes->size() >= maxBytes && isMultibyte(bytes->back())) {
    const std::uint64_t end = window.offset + bytes->size();
    const Result<std::string> more = readBytes(reference, end, kCharacterReach, window.totalBytes, stop);
    if (!more) {
      return more.error();
    }
    const std::string both = *bytes + *more;
    bytes = both.substr(0, characterEnd(both, bytes->size()));
  }
  if (!bytes) {
    return std::move(bytes).error();
  }
  window.text = toUtf8(*bytes);
  window.bytes = bytes->size();
  return window;
}

Result<std::string> HostArtifacts::fromNextCharacter(const std::string& reference, const std::string& bytes,
                                                     std::size_t maxBytes, ArtifactWindow& window,
                                                     const std::stop_token& stop) const {
  const std::size_t back = std::min<std::uint64_t>(window.offset, kCharacterReach);
  const Result<std::string> before = readBytes(reference, window.offset - back, back, window.totalBytes, stop);
  if (!before) {
    return before.error();
  }
  const bool full = bytes.size() == maxBytes;
  const std::uint64_t end = window.offset + bytes.size();
  Result<std::string> more = full ? readBytes(reference, end, kCharacterReach, window.totalBytes, stop) : std::string();
  if (!more) {
    return more;
  }
  const std::string all = *before + bytes + *more;
  const std::size_t begin = characterEnd(all, before->size());
  window.offset += begin - before->size();
  return all.substr(begin, maxBytes);
}

// A store may give less than it is asked for, but nothing only at the end.
Result<std::string> HostArtifacts::readBytes(const std::string& reference, std::uint64_t offset, std::size_t count,
                                             std::optional<std::uint64_t>& totalBytes,
                                             const std::stop_token& stop) const {
  std::string bytes;
  while (bytes.size() < count) {
    Result<std::string> some = readSome(reference, offset + bytes.size(), count - bytes.size(), totalBytes, stop);
    if (!some) {
      return some;
    }
    bytes += *some;
    const std::uint64_t end = offset + bytes.size();
    if (totalBytes && (some->empty() ? end < *totalBytes : end > *totalBytes)) {
      return strangeArtifactAnswer();
    }
    if (some->empty() || (totalBytes && end == *totalBytes)) {
      break;
    }
  }
  return bytes;
}

Result<std::string> HostArtifacts::readSome(const std::string& reference, std::uint64_t offset, std::size_t count,
                                            std::optional<std::uint64_t>& totalBytes,
                                            const std::stop_token& stop) const {
  const Result<json::value> answer =
      ask("host.artifacts.read", {{"reference", reference}, {"offset", offset}, {"maxBytes", count}}, stop);
  if (!answer) {
    return hostFailed(answer.error(), reference);
  }
  const std::optional<std::string> text = textOf(memberOf(*answer, "base64"));
  std::optional<std::string> bytes = text ? decodeBase64(*text) : std::nullopt;
  const json::value* total = memberOf(*answer, "totalBytes");
  const std::optional<std::int64_t> told = countOf(total);
  if (!bytes || bytes->size() > count || (total != nullptr && !told)) {
    return strangeArtifactAnswer();
  }
  if (told) {
    totalBytes = static_cast<std::uint64_t>(*told);
  }
  return std::move(*bytes);
}

Result<std::vector<ArtifactMatch>> HostArtifacts::search(const std::string& reference, const std::string& query,
                                                         std::size_t maxMatches, const std::stop_token& stop) const {
  const Result<json::value> answer =
      ask("host.artifacts.search", {{"reference", reference}, {"query", query}, {"maxMatches", maxMatches}}, stop);
  if (!answer) {
    return hostFailed(answer.error(), reference);
  }
  const json::value* found = memberOf(*answer, "matches");
  if (found == nullptr || !found->is_array() || found->get_array().size() > maxMatches) {
    return strangeArtifactAnswer();
  }
  std::vector<ArtifactMatch> matches;
  for (const json::value& match : found->get_array()) {
    const std::optional<std::int64_t> line = countOf(memberOf(match, "line"));
    std::optional<std::string> text = textOf(memberOf(match, "text"));
    if (!line || *line == 0 || !text) {
      return strangeArtifactAnswer();
    }
    matches.push_back({*line, matchText(*text, std::min(text->find(query), text->size()), query.size())});
  }
  return matches;
}

}  // namespace stitchkit
