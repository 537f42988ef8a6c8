// An HTTP/1.1 server of the test's on 127.0.0.1, that answers as the test says: the upstream of a gateway.
#pragma once

#include "rpc/base/unique_fd.h"

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/support/processes.h"

namespace stitchkit::testing {

struct UpstreamRequest {
  std::string method;
  std::string target;
  std::multimap<std::string, std::string> headers;  ///< names in lower case
  std::string body;

  /// All values of it, joined by `|`; "" when there is none.
  [[nodiscard]] std::string header(const std::string& name) const;
};

/// A thread a connection. The handler runs on it, several at once.
class Upstream {
 public:
  /// Writes its answer to the descriptor. Returns whether the connection lives on.
  using Handler = std::function<bool(const UpstreamRequest& request, int connection)>;

  /// Starts to listen. `address`: another one of this machine.
  explicit Upstream(Handler handler, const char* address = "127.0.0.1");
  /// Answers every request with 200 and `ok`.
  Upstream();
  /// Ends all connections, also under a handler's hands, and waits for the handlers.
  ~Upstream();
  Upstream(const Upstream&) = delete;
  Upstream& operator=(const Upstream&) = delete;

  [[nodiscard]] int port() const { return port_; }
  /// `127.0.0.1:PORT`, and the same as an origin.
  [[nodiscard]] std::string host() const { return "127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] std::string origin() const { return "http://" + host(); }

  /// Whole requests so far.
  [[nodiscard]] std::vector<UpstreamRequest> requests() const;
  [[nodiscard]] std::size_t count() const;
  bool waitForCount(std::size_t least, Milliseconds within = Milliseconds(20000)) const;
  /// Connections that are open now. The kernel may hold some that it has not yet accepted.
  [[nodiscard]] std::size_t open() const;
  /// Whether all who have connected before this call have been let in and have left, soon.
  [[nodiscard]] bool allLeft() const;

 private:
  struct Connection {
    UniqueFd socket;
    std::thread thread;
    bool ended = false;
  };

  void accept();
  void serve(Connection& connection);
  void forgetEnded();

  Handler handler_;
  UniqueFd listener_;
  int port_ = 0;
  mutable std::mutex mutex_;
  mutable std::condition_variable arrived_;
  std::vector<UpstreamRequest> requests_;
  std::list<Connection> connections_;
  bool stopping_ = false;
  std::thread acceptor_;
};

/// A whole response with a length.
std::string response(std::string_view body, std::string_view headers = "", std::string_view status = "200 OK");
/// False when the other side is gone.
bool sendAll(int connection, std::string_view bytes);
/// Until the other side has closed it, whatever else it sends.
void waitForClose(int connection);

}  // namespace stitchkit::testing
