// The gateway of a handle, as its owner sees it: a Unix socket that opens allowed origins to guests (PROTOCOL.md, 6).
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "gateway/gateway_core.h"
#include "rpc/loop.h"

namespace stitchkit {

struct GatewayOptions {
  std::string caFile;         ///< --ca-file; "" for none
  bool privateNames = false;  ///< --private-origins
};

/// The thread that serves all gateways, and the threads of their calls. Nothing of a guest's is read anywhere else, and
/// each call of it is bounded, so that one handle cannot keep it from another. Outlives every Gateway.
class GatewayThread {
 public:
  explicit GatewayThread(GatewayOptions options);
  ~GatewayThread();
  GatewayThread(const GatewayThread&) = delete;
  GatewayThread& operator=(const GatewayThread&) = delete;

  [[nodiscard]] boost::asio::io_context& context() { return context_; }
  [[nodiscard]] CallThreads& calls() { return calls_; }
  [[nodiscard]] const UpstreamSettings& settings() const { return settings_; }

 private:
  TlsContext tls_;
  UpstreamSettings settings_;
  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{context_.get_executor()};
  CallThreads calls_;
  std::thread thread_;
};

/// A listening Unix socket `name` in a directory, in the place of a stale one. Only the sidecar's own user may connect,
/// which guests are for the kernel. Paths of any length. Blocks on the disk. kNetworkDenied.
Result<UniqueFd> listenInDirectory(const std::string& directory, const std::string& name);

/// Loop-thread only; callbacks come on the loop.
class Gateway {
 public:
  using OnFailure = std::function<void(const GatewayFailure&)>;

  /// @param listening of listenInDirectory().
  Gateway(Loop& loop, GatewayThread& thread, UniqueFd listening, NetworkPolicy policy, OnFailure onFailure);

  /// Ends what is in flight; when `done` is called no request of the former policy will send another byte.
  void setPolicy(NetworkPolicy policy, std::function<void()> done);
  /// The same for good. Must be called, and its `done` awaited, before the thread ends.
  void close(std::function<void()> done);
  void setPaused(bool paused);

 private:
  Loop& loop_;
  std::shared_ptr<GatewayCore> core_;
};

}  // namespace stitchkit
