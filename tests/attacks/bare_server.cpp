// cpp-httplib's server as it comes, with the limits that it has, on the Unix socket that is its argument: what stands
// where the gateway does, and protects nothing. Says `listening`.
#include <httplib.h>

#include <cstdio>

int main(int argc, char** argv) {
  httplib::Server server;
  server.new_task_queue = [] { return new httplib::ThreadPool(16); };
  server.set_payload_max_length(1024U * 1024);
  server.set_address_family(AF_UNIX);
  server.Get("/",
             [](const httplib::Request&, httplib::Response& response) { response.set_content("ok", "text/plain"); });
  server.Post("/",
              [](const httplib::Request&, httplib::Response& response) { response.set_content("ok", "text/plain"); });
  if (argc != 2 || !server.bind_to_port(argv[1], 80)) {
    return 1;
  }
  std::puts("listening");
  std::fflush(stdout);
  return server.listen_after_bind() ? 0 : 1;
}
