// What the gateway is measured beside: an upstream that costs next to nothing, and a bare server of cpp-httplib.
#pragma once

#include "rpc/base/unique_fd.h"

#include <memory>
#include <string>
#include <thread>

namespace stitchkit::bench {

/// One thread; answers whatever it reads, in one read, with 1 KiB. On 127.0.0.1. Runs from the constructor to the
/// destructor.
class CheapUpstream {
 public:
  CheapUpstream();
  ~CheapUpstream();
  CheapUpstream(const CheapUpstream&) = delete;
  CheapUpstream& operator=(const CheapUpstream&) = delete;

  [[nodiscard]] int port() const noexcept { return port_; }

 private:
  void serve();

  UniqueFd listener_, stop_, events_;
  int port_ = 0;
  std::thread thread_;
};

/// cpp-httplib's server as it comes, with a thread for each of the clients: 1 KiB for every GET, on a Unix socket.
class LibraryServer {
 public:
  LibraryServer(const std::string& path, int clients);
  ~LibraryServer();
  LibraryServer(const LibraryServer&) = delete;
  LibraryServer& operator=(const LibraryServer&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stitchkit::bench
