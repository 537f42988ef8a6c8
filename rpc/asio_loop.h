// The loop on Boost.Asio.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <thread>

#include "rpc/loop.h"

namespace stitchkit {

class AsioLoop : public Loop {
 public:
  AsioLoop() : thread_(std::this_thread::get_id()) {}

  void post(std::function<void()> task) override { boost::asio::post(context_, std::move(task)); }
  [[nodiscard]] bool onLoop() const override { return std::this_thread::get_id() == thread_; }
  [[nodiscard]] boost::asio::io_context& context() { return context_; }

 private:
  std::thread::id thread_;  // the thread that made it runs it
  boost::asio::io_context context_{1};
};

}  // namespace stitchkit
