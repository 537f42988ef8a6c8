// A guest's end of a connection: looked at, taken from, written to.
//
// Bytes are looked at first and taken later, together with the answer. The kernel wakes a guest that waits for its answer
// whenever bytes of it are taken, for nothing; so that costs it two wake-ups less a request, a tenth of all the work.
#pragma once

#include <boost/asio/local/stream_protocol.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace stitchkit {

/// Non-blocking. One thread. Handlers are not called after close().
class GuestSocket {
 public:
  /// What a look at the socket gave.
  enum class Look : std::uint8_t { kBytes, kNothing, kEnd };

  static constexpr std::size_t kLookAtOnce = 16U * 1024;

  explicit GuestSocket(boost::asio::local::stream_protocol::socket socket);

  /// Shows bytes that have not been taken.
  /// @param buffer kLookAtOnce bytes, which `bytes` is a view of.
  Look look(char* buffer, std::string_view& bytes);
  /// So many of the bytes shown are used; takeUsed() takes them.
  void used(std::size_t bytes) { used_ += bytes; }
  void takeUsed();
  /// Takes and drops what is there. @return how much; nothing at the end, or when there is nothing.
  std::size_t dropBytes(bool& ended);

  /// `then` once all is with the kernel, perhaps before the return; `failed` when the guest is gone.
  void write(std::string bytes, std::function<void()> then, std::function<void()> failed);
  void finishWriting();

  /// Bytes, or the end. At most one wait at a time: a second call does nothing.
  void onReadable(std::function<void()> handler);
  /// The guest has closed its end, not merely finished with sending.
  [[nodiscard]] bool guestIsGone();
  /// At most one wait at a time, likewise; it goes on until then.
  void onGuestGone(std::function<void()> handler);

  void close();

 private:
  void watch(std::function<void()> handler);

  boost::asio::local::stream_protocol::socket socket_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();  // until close()
  std::string outgoing_;                                  // while a write waits
  std::size_t used_ = 0;
  bool waiting_ = false;  // for bytes
  bool watching_ = false;  // for the guest to leave
};

}  // namespace stitchkit
