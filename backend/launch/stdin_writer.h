// Feeds a guest's standard input without ever blocking the loop.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <memory>
#include <string>

#include "rpc/base/unique_fd.h"

namespace stitchkit {

/// Loop thread only. A guest that does not read its input, or ends before it has, is no failure. The process must
/// ignore SIGPIPE.
class StdinWriter {
 public:
  StdinWriter(boost::asio::io_context& io, UniqueFd writeEnd, std::string bytes);

  /// Writes as much as fits now and the rest as the guest reads; then closes. `keep` keeps the owner alive.
  void start(std::shared_ptr<void> keep);

  /// The guest has ended: what is not written is dropped.
  void close();

 private:
  bool writeSome();

  boost::asio::posix::stream_descriptor pipe_;
  std::string bytes_;
  std::size_t written_ = 0;
};

}  // namespace stitchkit
