// An HTTP/1.1 server on loopback that a case describes: what guests may reach through the gateway.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "conformance/certificates.h"
#include "conformance/events.h"
#include "conformance/upstream_script.h"
#include "conformance/upstream_stream.h"

namespace conformance {

/// A thread that accepts, and one for each of at most 128 connections. The public members belong to the thread that
/// made it.
class Upstream {
 public:
  /// What came since the last takeRecord().
  struct Record {
    Json requests = Json::array();  ///< `{method, target, headers, fields, body}`, or `{wrong: text}`
    int connections = 0;
    int handshakes = 0;  ///< of these, with TLS that succeeded
  };

  /// @param tls  a kind of certificate (certificates.h), or "" for plain TCP
  /// Null on failure, and `problem` says why.
  static std::unique_ptr<Upstream> start(const std::string& tls, Events& events, std::string& problem);
  Upstream(const Upstream&) = delete;
  Upstream& operator=(const Upstream&) = delete;
  /// Ends every connection.
  ~Upstream();

  /// From the next request on.
  void setScript(UpstreamScript script);
  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] bool secure() const { return context_ != nullptr; }

  /// Once every connection that was made has been accepted, and every byte that came been read.
  Record takeRecord();
  /// Waits for so many whole requests since the last takeRecord().
  bool awaitRequests(std::size_t count, Deadline deadline);
  /// Waits until no connection is open.
  bool awaitLeft(Deadline deadline);

 private:
  Upstream(Descriptor listener, int port, SslContext context, Events& events);
  void acceptLoop();
  /// Accepts whatever waits.
  void acceptSome();
  void serve(Descriptor socket);
  /// Reads, records and answers until an end.
  void converse(UpstreamStream& stream);
  void record(Json request);
  bool answer(UpstreamStream& stream, const HttpMessage& request);
  void settle();
  bool awaitChange(const std::function<bool()>& done, Deadline deadline);

  const Descriptor listener_;
  const int port_;
  const SslContext context_;
  Events& events_;
  Event stop_;
  std::mutex accepting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  UpstreamScript script_{Json::object()};
  Record record_;
  std::size_t starting_ = 0;                    ///< accepted, and not yet among the open ones
  std::vector<const UpstreamStream*> streams_;  ///< that are open
  std::vector<std::jthread> threads_;           ///< the first accepts
};

}  // namespace conformance
