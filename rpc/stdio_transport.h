// The peer's bytes: reads frames from stdin and writes whole messages to stdout, by readiness, on the loop thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "rpc/frame_decoder.h"
#include "rpc/peer.h"
#include "rpc/queue_state.h"
#include "rpc/stdio.h"

namespace stitchkit {

/// Loop-thread only.
class StdioTransport : public MessageSink {
 public:
  struct Events {
    std::function<void(FrameEvent)> onFrame;
    std::function<void()> onInputEnd;
    std::function<void()> onOutputGone;      ///< nobody reads stdout any more; at most once
    std::function<void(bool)> onCongestion;  ///< the host does not read (true), or reads again (false)
  };

  StdioTransport(boost::asio::io_context& context, Stdio stdio, Framing framing, std::size_t maxMessageBytes);

  void start(Events events);
  /// Whether input is read; off while too much work is waiting.
  void setReading(bool reading);
  void send(std::string text) override;
  /// Bytes that the host has not taken.
  [[nodiscard]] QueueState unsentBytes() const;
  /// `done` runs when everything has been written, or cannot be.
  void whenFlushed(std::function<void()> done);

 private:
  void waitReadable();
  void readSome();
  void deliver(std::string_view bytes);
  void endInput();
  void watchOutput();
  void waitWritable();
  void writeSome();
  void outputGone();
  void checkDrained();

  boost::asio::io_context& context_;
  FrameDecoder decoder_;
  Events events_;
  boost::asio::posix::stream_descriptor input_;
  boost::asio::posix::stream_descriptor output_;
  UniqueFd inputFile_;  // instead of input_ when it cannot be polled
  UniqueFd outputFile_;
  std::vector<char> readBuffer_;
  std::vector<FrameEvent> frames_;
  std::deque<std::string> queue_;  // whole messages; the front may be partly written
  std::size_t frontWritten_ = 0;
  std::size_t unsentBytes_ = 0;
  HighWater mostUnsent_;
  bool reading_ = false;
  bool readWaiting_ = false;
  bool inputEnded_ = false;
  bool writeWaiting_ = false;
  bool outputGone_ = false;
  bool congested_ = false;
  std::function<void()> flushed_;
};

}  // namespace stitchkit
