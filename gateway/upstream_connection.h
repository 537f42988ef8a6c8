// One connection to an upstream, plain or TLS. Nothing in it waits.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <optional>
#include <string_view>
#include <utility>

#include "gateway/tls.h"

namespace stitchkit {

/// How far an operation came.
struct Progress {
  std::size_t bytes = 0;
  bool ended = false;                                          ///< of a read: the stream's end
  std::optional<boost::asio::socket_base::wait_type> waitFor;  ///< nothing happened; try again then
};

using TcpSocket = boost::asio::basic_stream_socket<boost::asio::ip::tcp, boost::asio::io_context::executor_type>;

/// One thread.
class UpstreamConnection {
 public:
  /// @param socket connected and non-blocking. @param ssl null for plain TCP.
  UpstreamConnection(TcpSocket socket, SslPtr ssl) : socket_(std::move(socket)), ssl_(std::move(ssl)) {}

  // All fail with kInternal.

  /// To be called until it asks for nothing.
  Result<Progress> shakeHands();
  Result<Progress> write(std::string_view bytes);
  /// Under TLS an end without a farewell is a failure, since it could be an attacker's.
  Result<Progress> read(char* buffer, std::size_t size);

  /// Nothing came unasked, not even the end: another request may go out.
  [[nodiscard]] bool quiet();
  [[nodiscard]] TcpSocket& socket() noexcept { return socket_; }

 private:
  Result<Progress> afterTls(int result, const char* what);

  TcpSocket socket_;
  SslPtr ssl_;
};

}  // namespace stitchkit
