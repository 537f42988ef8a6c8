// A guest's connection: the first byte decides the pieces that the rest comes in, the second how large a body may be.
// Each request is read by a fence of its own, as the gateway does it, until one is refused.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/request_fence.h"
#include "gateway/request_target.h"
#include "rpc/base/limits.h"
#include "tests/fuzz/allocated.h"
#include "tests/fuzz/pieces.h"
#include "tests/fuzz/require.h"

namespace stitchkit {
namespace {

using State = RequestFence::State;

// Of one fence and of what has been read, whatever comes: some copies of the header, and a body of at most 16 KiB.
constexpr std::size_t kMostAllocated = 512U * 1024;
constexpr std::size_t kLookEvery = 64;  // asking costs more than a byte does

/// A request that came, as text, or why none did.
std::string outcomeOf(RequestFence& fence) {
  GuestRequest& request = fence.request();
  if (fence.state() == State::kRefused) {
    return "refused " + std::to_string(fence.status());
  }
  if (fence.state() != State::kComplete) {
    return "wants more";
  }
  std::string text = request.method + " " + request.target + (request.keepAlive ? " keep" : " close");
  text += request.expectsContinue ? " expects\n" : "\n";
  for (const HeaderField& field : request.fields) {
    text += field.name + ": " + field.value + "\n";
  }
  return text + request.body;
}

void checkRequest(const GuestRequest& request, std::uint64_t limit) {
  FUZZ_REQUIRE(!request.method.empty() && !request.target.empty());
  FUZZ_REQUIRE(request.fields.size() <= limits::kGatewayHeaderFields);
  FUZZ_REQUIRE(request.count("content-length") + request.count("transfer-encoding") <= 1);
  FUZZ_REQUIRE(request.body.size() <= limit);
  FUZZ_REQUIRE(request.chunked || request.body.size() == request.contentLength.value_or(0));
  FUZZ_REQUIRE(request.hasBody() || request.body.empty());
  std::size_t bytes = request.method.size() + request.target.size();
  for (const HeaderField& field : request.fields) {
    bytes += field.name.size() + field.value.size();
    FUZZ_REQUIRE(!field.name.empty());
    FUZZ_REQUIRE(field.value.empty() || (field.value.front() != ' ' && field.value.back() != ' '));
    for (const char c : field.value) {
      FUZZ_REQUIRE(static_cast<unsigned char>(c) >= ' ' || c == '\t');
    }
  }
  FUZZ_REQUIRE(bytes <= limits::kGatewayHeaderBytes);
  if (const auto target = parseRequestTarget(request.target)) {
    const auto again = parseRequestTarget(target->text());
    FUZZ_REQUIRE(again && again->path == target->path && again->query == target->query);
    FUZZ_REQUIRE(target->path.starts_with('/') && !target->path.starts_with("//"));
  }
}

/// What a fence makes of all bytes up to the first refusal.
std::vector<std::string> read(std::string_view bytes, fuzz::Pieces pieces, std::uint64_t limit) {
  const std::size_t before = fuzz::allocatedBytes();
  std::vector<std::string> outcomes;
  auto fence = std::make_unique<RequestFence>();
  while (!bytes.empty()) {
    std::string_view piece = bytes.substr(0, pieces.next());
    bytes.remove_prefix(piece.size());
    FUZZ_REQUIRE(bytes.size() % kLookEvery != 0 || fuzz::allocatedBytes() <= before + kMostAllocated);
    while (!piece.empty()) {
      const std::size_t taken = fence->feed(piece);
      FUZZ_REQUIRE(taken <= piece.size());
      piece.remove_prefix(taken);
      if (fence->state() == State::kHeaderDone) {
        fence->admitBody(limit);
      }
      FUZZ_REQUIRE(fence->bodyBytes() <= limit);
      if (fence->state() == State::kRefused) {
        outcomes.push_back(outcomeOf(*fence));
        FUZZ_REQUIRE(fence->feed("GET / HTTP/1.1\r\nHost: a\r\n\r\n") == 0);
        FUZZ_REQUIRE(fence->state() == State::kRefused);
        return outcomes;
      }
      if (fence->state() == State::kComplete) {
        outcomes.push_back(outcomeOf(*fence));
        checkRequest(fence->request(), limit);
        FUZZ_REQUIRE(fence->feed("GET") == 0);
        fence = std::make_unique<RequestFence>();
      } else {
        FUZZ_REQUIRE(taken != 0 || piece.empty());
      }
    }
  }
  outcomes.push_back(outcomeOf(*fence));
  return outcomes;
}

}  // namespace
}  // namespace stitchkit

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stitchkit;
  if (size < 2) {
    return 0;
  }
  const std::uint64_t limit = std::uint64_t{data[1]} * 64;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const auto whole = read(bytes, fuzz::Pieces::whole(), limit);
  FUZZ_REQUIRE(read(bytes, fuzz::Pieces(data[0]), limit) == whole);
  const bool isShort = size <= 4096;
  FUZZ_REQUIRE(!isShort || read(bytes, fuzz::Pieces::ofOne(), limit) == whole);
  return 0;
}
