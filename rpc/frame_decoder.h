// Bytes to frames: one JSON text a line, or `Content-Length` headers (PROTOCOL.md, 1). Pure: no input or output, so
// that a test can feed it in any slices. Sizes are judged before anything is kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stitchkit {

/// kAuto decides by the first non-blank byte and answers in kind. A letter begins a header block, but for two things
/// that no header block holds: a first line without CR that is no header, and a line that begins with `{` or `[`. Then
/// what came before was a stray word (somebody's log line), and decides nothing.
enum class Framing : std::uint8_t { kAuto, kLines, kHeaders };

/// What the decoder found.
struct FrameEvent {
  enum class Kind : std::uint8_t {
    kMessage,    ///< `text` is one frame, not yet known to be JSON
    kTooLarge,   ///< a frame over the limit; its bytes are being skipped
    kBadHeader,  ///< no usable header block; the decoder waits for the next `Content-Length`
    kCutOff,     ///< the stream ended inside a header block or a body
  };
  Kind kind;
  std::string text;
};

/// Not thread-safe. Holds at most one frame (`maxMessageBytes`) and one header block.
class FrameDecoder {
 public:
  FrameDecoder(Framing framing, std::size_t maxMessageBytes) : framing_(framing), maxBytes_(maxMessageBytes) {}

  /// Takes the next bytes of the stream and appends what they complete to `events`.
  void feed(std::string_view bytes, std::vector<FrameEvent>& events);
  /// The stream has ended: a last line without its newline is a frame.
  void end(std::vector<FrameEvent>& events);
  /// kAuto until it is decided; a bad header block is reported when it is.
  [[nodiscard]] Framing framing() const { return framing_; }

 private:
  enum class State : std::uint8_t { kStart, kLine, kSkipLine, kHeader, kSkipBlock, kResync, kBody, kSkipBody };

  std::size_t takeStart(std::string_view bytes);
  std::size_t takeLine(std::string_view bytes, std::vector<FrameEvent>& events);
  std::size_t takeHeaderLine(std::string_view bytes, std::vector<FrameEvent>& events);
  std::size_t takeSkippedLine(std::string_view bytes, std::vector<FrameEvent>& events);
  std::size_t takeBody(std::string_view bytes, std::vector<FrameEvent>& events);
  void onHeaderLine(std::string_view line, std::vector<FrameEvent>& events);
  void onHeadersDone(std::vector<FrameEvent>& events);
  void resyncAt(std::string_view line, std::vector<FrameEvent>& events);
  void badBlock(std::vector<FrameEvent>& events);
  void blockEnds();
  void decideHeaders(std::vector<FrameEvent>& events);
  void strayWord(std::vector<FrameEvent>& events);
  [[nodiscard]] bool beginsJson(std::string_view bytes) const;
  void endHeaders(std::vector<FrameEvent>& events);
  [[nodiscard]] bool overLimit(std::string_view more) const;

  Framing framing_;
  std::size_t maxBytes_;
  State state_ = State::kStart;
  std::string buffer_;        // the unfinished frame, header line or (at the start) byte-order mark
  std::size_t bodyLeft_ = 0;  // kBody, kSkipBody
  std::size_t headerBytes_ = 0;
  std::size_t contentLength_ = 0;
  bool contentLengthSeen_ = false;  // and fit for use
  bool lengthNamed_ = false;        // the block has a Content-Length of whatever kind
  bool blockBegun_ = false;
  bool skippedBlank_ = true;   // of the line being skipped, of which buffer_ holds the end only
  bool reportOwed_ = false;    // of a bad block, until the framing is decided
  bool atStreamStart_ = true;  // where alone a byte-order mark may stand
  bool undecided_ = false;     // kAuto has met a letter; what follows may still show that it was a stray word
};

}  // namespace stitchkit
