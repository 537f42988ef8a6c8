#include "codingtools/host_artifacts.h"

#include "codingtools/text_window.h"
#include "rpc/base/base64.h"

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

namespace stitchkit {

namespace json = boost::json;

namespace {

constexpr const char* kUnknownReference = "SPILL_REFERENCE_UNKNOWN";

Error hostFailed(const Error& cause, const std::string& reference) {
  if (cause.kind == ErrorKind::kCancelled) {
    return cause;
  }
  if (cause.reason == kUnknownReference) {
    return Error(ErrorKind::kSpillReferenceUnknown, "There is no such artifact")
        .withDetail("reference", reference)
        .withHint("Use a reference that run_command gave.");
  }
  return Error(ErrorKind::kInternal, "The host's store of artifacts failed")
      .withPrivate(cause.message + " " + cause.reason + " " + cause.privateDetail);
}

Error strangeAnswer() {
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

}  // namespace

Result<std::string> HostArtifacts::write(std::string_view content, const json::object& request,
                                         const std::stop_token& stop) const {
  const Result<json::value> answer = host_.ask(
      "host.artifacts.write",
      {{"mediaType", "text/plain; charset=utf-8"}, {"base64", encodeBase64(content)}, {"request", request}}, stop);
  if (!answer) {
    return hostFailed(answer.error(), {});
  }
  const std::optional<std::string> reference = textOf(memberOf(*answer, "reference"));
  return reference ? Result<std::string>(*reference) : strangeAnswer();
}

Result<std::optional<json::object>> HostArtifacts::authorization(const std::string& reference,
                                                                 const std::stop_token& stop) const {
  const Result<json::value> answer = host_.ask("host.artifacts.authorization", {{"reference", reference}}, stop);
  if (!answer) {
    Error error = hostFailed(answer.error(), reference);
    error.kind = error.kind == ErrorKind::kInternal ? ErrorKind::kForbidden : error.kind;
    return error;
  }
  const json::value* request = memberOf(*answer, "request");
  if (!answer->is_object() || (request != nullptr && !request->is_object())) {
    Error error = strangeAnswer();
    error.kind = ErrorKind::kForbidden;
    return error;
  }
  return request != nullptr ? std::optional(request->get_object()) : std::nullopt;
}

Result<ArtifactWindow> HostArtifacts::read(const std::string& reference, std::uint64_t offset, std::size_t maxBytes,
                                           const std::stop_token& stop) const {
  ArtifactWindow window;
  const auto ask = [&](std::uint64_t from, std::size_t count) -> Result<std::string> {
    const Result<json::value> answer =
        host_.ask("host.artifacts.read", {{"reference", reference}, {"offset", from}, {"maxBytes", count}}, stop);
    if (!answer) {
      return hostFailed(answer.error(), reference);
    }
    const std::optional<std::string> text = textOf(memberOf(*answer, "base64"));
    std::optional<std::string> bytes = text ? decodeBase64(*text) : std::nullopt;
    const json::value* total = memberOf(*answer, "totalBytes");
    const std::optional<std::int64_t> totalBytes = countOf(total);
    if (!bytes || bytes->size() > count || (total != nullptr && !totalBytes)) {
      return strangeAnswer();
    }
    if (totalBytes) {
      window.totalBytes = static_cast<std::uint64_t>(*totalBytes);
    }
    return std::move(*bytes);
  };
  Result<TextWindow> read = textWindow(ask, offset, maxBytes, Malformed::kReplaced);
  if (!read) {
    return std::move(read).error();
  }
  window.offset = read->end - read->bytes;
  window.text = std::move(read->text);
  window.bytes = read->bytes;
  return window;
}

Result<std::vector<ArtifactMatch>> HostArtifacts::search(const std::string& reference, const std::string& query,
                                                         std::size_t maxMatches, const std::stop_token& stop) const {
  const Result<json::value> answer = host_.ask(
      "host.artifacts.search", {{"reference", reference}, {"query", query}, {"maxMatches", maxMatches}}, stop);
  if (!answer) {
    return hostFailed(answer.error(), reference);
  }
  const json::value* found = memberOf(*answer, "matches");
  if (found == nullptr || !found->is_array() || found->get_array().size() > maxMatches) {
    return strangeAnswer();
  }
  std::vector<ArtifactMatch> matches;
  for (const json::value& match : found->get_array()) {
    const std::optional<std::int64_t> line = countOf(memberOf(match, "line"));
    std::optional<std::string> text = textOf(memberOf(match, "text"));
    if (!line || !text) {
      return strangeAnswer();
    }
    matches.push_back({*line, std::move(*text)});
  }
  return matches;
}

}  // namespace stitchkit
