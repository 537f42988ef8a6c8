// A host's whole stream: bytes to frames to messages. The first byte chooses the framing, the second how the stream is
// cut into pieces; neither may change what is read.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rpc/base/utf8.h"
#include "rpc/frame_decoder.h"
#include "rpc/message.h"
#include "tests/fuzz/require.h"

namespace stitchkit {
namespace {

constexpr std::size_t kMaxMessageBytes = 512;  // small, so that inputs reach beyond it

std::vector<FrameEvent> decode(Framing framing, std::string_view bytes, std::size_t piece) {
  FrameDecoder decoder(framing, kMaxMessageBytes);
  std::vector<FrameEvent> events;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    decoder.feed(bytes.substr(0, piece), events);
  }
  decoder.end(events);
  return events;
}

void checkAnswer(const std::string& text) {
  FUZZ_REQUIRE(text.find('\n') == std::string::npos);
  FUZZ_REQUIRE(isUtf8(text));
  FUZZ_REQUIRE(nlohmann::json::accept(text));
}

void checkMessage(const Message& message) {
  if (const auto* request = std::get_if<RequestMessage>(&message)) {
    checkAnswer(resultText(request->id.value_or(nullptr), request->params));
  } else if (const auto* response = std::get_if<ResponseMessage>(&message)) {
    checkAnswer(resultText(response->id, response->payload));
  } else {
    const auto& invalid = std::get<InvalidMessage>(message);
    checkAnswer(errorText(invalid.id, invalid.error));
  }
}

void checkFrame(const std::string& text) {
  const Result<Frame> frame = parseFrame(text);
  if (!frame) {
    checkAnswer(errorText(nullptr, frame.error()));
    return;
  }
  // What one parser takes and another refuses is where requests are smuggled.
  FUZZ_REQUIRE(nlohmann::json::accept(text));
  FUZZ_REQUIRE(isUtf8(text));
  FUZZ_REQUIRE(frame->batch || frame->messages.size() == 1);
  for (const Message& message : frame->messages) {
    checkMessage(message);
  }
}

}  // namespace
}  // namespace stitchkit

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stitchkit;
  if (size < 2) {
    return 0;
  }
  constexpr Framing kFramings[] = {Framing::kAuto, Framing::kLines, Framing::kHeaders};
  const Framing framing = kFramings[data[0] % 3];
  const std::size_t piece = data[1] % 16 + 1;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::vector<FrameEvent> whole = decode(framing, bytes, std::string_view::npos);
  const std::vector<FrameEvent> sliced = decode(framing, bytes, piece);
  FUZZ_REQUIRE(whole.size() == sliced.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    FUZZ_REQUIRE(whole[i].kind == sliced[i].kind);
    FUZZ_REQUIRE(whole[i].text == sliced[i].text);
    FUZZ_REQUIRE(whole[i].text.size() <= kMaxMessageBytes + 1);  // a line may keep the CR of its end
    if (whole[i].kind == FrameEvent::Kind::kMessage) {
      checkFrame(whole[i].text);
    }
  }
  return 0;
}
