// The one source of the benchmark that sees cpp-httplib.
#include "bench/http_servers.h"

#include <httplib.h>

#include <limits>
#include <stdexcept>

namespace stitchkit::bench {

struct LibraryServer::State {
  httplib::Server server;
  std::thread thread;
};

LibraryServer::LibraryServer(const std::string& path, int clients) : state_(std::make_unique<State>()) {
  httplib::Server& server = state_->server;
  server.new_task_queue = [clients] { return new httplib::ThreadPool(static_cast<std::size_t>(clients)); };
  server.set_keep_alive_max_count(std::numeric_limits<std::size_t>::max());
  server.set_address_family(AF_UNIX);
  server.Get("/", [body = std::string(1024, 'x')](const httplib::Request&, httplib::Response& response) {
    response.set_content(body, "text/plain");
  });
  if (!server.bind_to_port(path.c_str(), 80)) {
    throw std::runtime_error("cpp-httplib does not listen on " + path);
  }
  state_->thread = std::thread([&server] { server.listen_after_bind(); });
}

LibraryServer::~LibraryServer() {
  while (!state_->server.is_running()) {
    std::this_thread::yield();  // a stop before the start would be lost
  }
  state_->server.stop();
  state_->thread.join();
}

}  // namespace stitchkit::bench
