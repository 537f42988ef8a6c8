// An upstream's connection: the first byte decides the pieces that the rest comes in, the second how large a body may
// be; its lowest bit whether the request was HEAD. At the end the connection ends.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "gateway/forwarding.h"
#include "gateway/response_fence.h"
#include "rpc/base/limits.h"
#include "tests/fuzz/allocated.h"
#include "tests/fuzz/pieces.h"
#include "tests/fuzz/require.h"

namespace stitchkit {
namespace {

// Of one fence, whatever comes: some copies of the header, and a body of at most 16 KiB.
constexpr std::size_t kMostAllocated = 1024U * 1024;
constexpr std::size_t kLookEvery = 64;  // asking costs more than a byte does

std::string failureText(const Error& error) {
  FUZZ_REQUIRE(error.kind == ErrorKind::kInternal || error.kind == ErrorKind::kNetworkDenied ||
               error.kind == ErrorKind::kLimit);
  FUZZ_REQUIRE(!error.message.empty());
  return "failed " + std::to_string(static_cast<int>(error.kind)) + " " + error.message;
}

/// The guest's message has one header block, in which no byte of the upstream makes a line of its own.
void checkGuestResponse(const UpstreamResponse& response, bool toHead) {
  Rule rule;
  rule.responseHeaders = {"server", "set-cookie", "x"};
  const std::string text = guestResponse(response, rule, toHead, true);
  const std::size_t end = text.find("\r\n\r\n");
  FUZZ_REQUIRE(end != std::string::npos);
  FUZZ_REQUIRE(text.substr(end + 4) == (toHead ? "" : response.body));
  std::size_t lengths = 0;
  for (std::size_t at = 0; at < end; at = text.find("\r\n", at) + 2) {
    const std::string_view line = std::string_view(text).substr(at, text.find("\r\n", at) - at);
    FUZZ_REQUIRE(line.find('\n') == std::string_view::npos && line.find('\r') == std::string_view::npos);
    const bool known = at == 0 || line == "connection: keep-alive" || line.starts_with("content-length: ") ||
                       line.starts_with("content-type: ") || line.starts_with("server: ") ||
                       line.starts_with("set-cookie: ") || line.starts_with("x: ");
    FUZZ_REQUIRE(known);
    lengths += line.starts_with("content-length: ") ? 1 : 0;
  }
  FUZZ_REQUIRE(lengths <= 1);
}

void checkResponse(const UpstreamResponse& response, bool toHead, std::uint64_t limit) {
  FUZZ_REQUIRE(response.status >= 200 && response.status < 600);
  FUZZ_REQUIRE(response.status < 300 || response.status >= 400);
  FUZZ_REQUIRE(response.body.size() <= limit);
  FUZZ_REQUIRE(!toHead || response.body.empty());
  std::size_t framings = 0;
  for (const HeaderField& field : response.fields) {
    FUZZ_REQUIRE(!field.name.empty());
    framings += field.name == "content-length" || field.name == "transfer-encoding" ? 1 : 0;
    const bool declares = field.name == "content-length" && !toHead && response.status != 204;
    FUZZ_REQUIRE(!declares || std::stoull(field.value) == response.body.size());
  }
  FUZZ_REQUIRE(framings <= 1);
  checkGuestResponse(response, toHead);
}

std::string read(std::string_view bytes, fuzz::Pieces pieces, bool toHead, std::uint64_t limit) {
  const std::size_t before = fuzz::allocatedBytes();
  ResponseFence fence(toHead, false, limit);
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, pieces.next());
    bytes.remove_prefix(piece.size());
    FUZZ_REQUIRE(bytes.size() % kLookEvery != 0 || fuzz::allocatedBytes() <= before + kMostAllocated);
    const bool wasComplete = fence.complete();
    if (const Result<void> fed = fence.feed(piece); !fed) {
      FUZZ_REQUIRE(!wasComplete && !fence.complete());
      return failureText(fed.error());
    }
    FUZZ_REQUIRE(fence.begun() && (!wasComplete || fence.complete()));
  }
  if (const Result<void> ended = fence.end(); !ended) {
    FUZZ_REQUIRE(!fence.complete());
    return failureText(ended.error());
  }
  FUZZ_REQUIRE(fence.complete());
  const UpstreamResponse response = fence.take();
  checkResponse(response, toHead, limit);
  std::string text = std::to_string(response.status) + (response.keepAlive ? " keep\n" : " close\n");
  for (const HeaderField& field : response.fields) {
    text += field.name + ": " + field.value + "\n";
  }
  return text + response.body;
}

}  // namespace
}  // namespace stitchkit

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stitchkit;
  if (size < 2) {
    return 0;
  }
  const bool toHead = (data[1] & 1U) != 0;
  const std::uint64_t limit = std::uint64_t{data[1]} * 64;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::string whole = read(bytes, fuzz::Pieces::whole(), toHead, limit);
  FUZZ_REQUIRE(read(bytes, fuzz::Pieces(data[0]), toHead, limit) == whole);
  const bool isShort = size <= 4096;
  FUZZ_REQUIRE(!isShort || read(bytes, fuzz::Pieces::ofOne(), toHead, limit) == whole);
  return 0;
}
