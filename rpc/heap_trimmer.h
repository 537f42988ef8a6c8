// Memory that was needed once goes back to the machine when it has been quiet for a while.
#pragma once

#include <boost/asio/steady_timer.hpp>

namespace stitchkit {

/// The allocator keeps tens of megabytes of what was freed, so that large messages in a row do not pay for fresh pages
/// each (see mallopt() in main.cpp). Loop-thread only. Costs no wake-up while nothing happens.
class HeapTrimmer {
 public:
  explicit HeapTrimmer(boost::asio::io_context& io) : timer_(io) {}

  /// Something happened that may have used memory.
  void used();

 private:
  void await();

  boost::asio::steady_timer timer_;
  bool awaiting_ = false;
  bool used_ = false;
};

}  // namespace stitchkit
