// The gateway of a handle, as its owner sees it: a Unix socket that opens allowed origins to guests (PROTOCOL.md, 6).
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gateway/gateway_core.h"
#include "rpc/loop.h"

namespace stitchkit {

struct GatewayOptions {
  std::string caFile;         ///< --ca-file; "" for none
  bool privateNames = false;  ///< --private-origins
};

/// The threads that serve all gateways: nothing of a guest's or an upstream's is read anywhere else. They never block,
/// and take from each connection in turn so much at a time, so that one handle cannot keep them from another. Outlives
/// every Gateway.
class GatewayThreads {
 public:
  /// Throws std::system_error where not one thread is to be had.
  explicit GatewayThreads(GatewayOptions options);
  ~GatewayThreads();
  GatewayThreads(const GatewayThreads&) = delete;
  GatewayThreads& operator=(const GatewayThreads&) = delete;

  [[nodiscard]] std::size_t count() const { return threads_.size(); }
  [[nodiscard]] ConnectionPlaces& places() { return places_; }
  [[nodiscard]] const UpstreamSettings& settings(std::size_t index) const { return threads_[index]->settings; }

 private:
  struct Thread {
    Thread(TlsContext& tls, bool privateNames) : settings{context, tls, systemLookup, privateNames} {}

    boost::asio::io_context context{1};
    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{context.get_executor()};
    UpstreamSettings settings;
    std::thread thread;
  };

  TlsContext tls_;
  ConnectionPlaces places_;
  std::vector<std::unique_ptr<Thread>> threads_;
};

/// A listening Unix socket `name` in a directory, in the place of a stale one. Only the sidecar's own user may connect,
/// which guests are for the kernel. Paths of any length. Blocks on the disk. kNetworkDenied.
Result<UniqueFd> listenInDirectory(const std::string& directory, const std::string& name);

/// Loop-thread only; callbacks come on the loop.
class Gateway {
 public:
  using OnFailure = std::function<void(const GatewayFailure&)>;

  /// @param listening of listenInDirectory(). @param watch sees what guests ask.
  Gateway(Loop& loop, GatewayThreads& threads, UniqueFd listening, NetworkPolicy policy,
          std::shared_ptr<GatewayWatch> watch, OnFailure onFailure);

  /// Ends what is in flight; when `done` is called no request of the former policy will send another byte.
  void setPolicy(NetworkPolicy policy, std::function<void()> done);
  /// The same for good. Its `done` must be awaited before the threads end.
  void close(std::function<void()> done);
  void setPaused(bool paused);

 private:
  void onAll(std::vector<std::shared_ptr<GatewayCore>> parts, const std::function<void(GatewayCore&)>& action,
             std::function<void()> done);

  Loop& loop_;
  ConnectionPlaces& places_;
  std::vector<std::shared_ptr<GatewayCore>> parts_;  // one a thread, until close()
};

}  // namespace stitchkit
