// A guest's end of a connection: looked at, taken from, written to.
//
// Bytes are looked at first and taken right after the answer was sent. The kernel wakes a guest that waits for its
// answer whenever bytes of it are taken, for nothing; behind the answer it is awake already.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace stitchkit {

/// Non-blocking. One thread.
class GuestSocket {
 public:
  using Socket =
      boost::asio::basic_stream_socket<boost::asio::local::stream_protocol, boost::asio::io_context::executor_type>;

  /// Called from the loop, never after close().
  class Events {
   public:
    virtual ~Events() = default;
    virtual void onReadable() = 0;
    virtual void onWritten() = 0;
    /// The guest has closed its end.
    virtual void onGuestGone() = 0;
  };

  /// What a look at the socket gave.
  enum class Look : std::uint8_t { kBytes, kNothing, kEnd };

  static constexpr std::size_t kLookAtOnce = 16UL * 1024;

  /// @param events outlives the socket, and is kept by its own means until close().
  GuestSocket(Socket socket, Events& events);

  /// Shows bytes that have not been taken.
  /// @param buffer kLookAtOnce bytes, which `bytes` is a view of.
  Look look(char* buffer, std::string_view& bytes);
  /// There is something to look at, were it only the end.
  [[nodiscard]] bool hasBytes();
  /// So many of the bytes shown are used; takeUsed() takes them.
  void used(std::size_t bytes) { used_ += bytes; }
  void takeUsed();
  /// Takes and drops what is there. @return how much; nothing at the end, or when there is nothing.
  std::size_t dropBytes(bool& ended);

  /// Sends, then takes what was used; on to Events::onWritten when the kernel does not take all at once.
  /// @return what became of it now.
  enum class Sent : std::uint8_t { kAll, kLater, kGuestGone };
  Sent write(std::string bytes);
  void finishWriting();

  /// On to Events::onReadable: bytes, or the end. One wait at a time: a second call does nothing.
  void waitForBytes();
  /// The guest has closed its end, not merely finished with sending.
  [[nodiscard]] bool guestIsGone();
  /// On to Events::onGuestGone. Likewise.
  void waitForGuestGone();

  void close();

 private:
  template <class F>
  auto whileOpen(F handler);

  Socket socket_;
  Events& events_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();  // until close()
  std::string outgoing_;                                  // while a write waits
  std::size_t used_ = 0;
  bool waiting_ = false;   // for bytes
  bool watching_ = false;  // for the guest to leave
};

}  // namespace stitchkit
