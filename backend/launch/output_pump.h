// Reads one output pipe of a guest as it fills, without ever waiting for a writer.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "rpc/base/unique_fd.h"

namespace stitchkit {

/// Loop thread only. `sink` gets the bytes in order and returns false to stop the pump; it may pause and resume it.
class OutputPump {
 public:
  using Sink = std::function<bool(std::string_view)>;

  OutputPump(boost::asio::io_context& io, UniqueFd readEnd, Sink sink);

  /// Reads whenever there is something, one piece a turn of the loop, so that a flood does not hold up timers.
  /// `owner` owns the pump and is kept alive while a wait is under way.
  void start(const std::shared_ptr<void>& owner);

  /// While paused nothing is read: the guest's writes fill the pipe and then wait.
  void pause() noexcept;
  void resume();

  /// Takes what lies in the pipe at this moment, paused or not, and closes it. To be called when the writers that
  /// matter have ended: another process that holds the pipe is neither waited for nor followed.
  void drain();

 private:
  void arm();
  void onReadable();
  enum class Piece : std::uint8_t { kTaken, kNone, kLast };
  Piece readPiece(std::size_t most);

  boost::asio::posix::stream_descriptor pipe_;
  Sink sink_;
  std::weak_ptr<void> owner_;
  bool running_ = false;
  bool paused_ = false;
  bool waiting_ = false;
};

}  // namespace stitchkit
