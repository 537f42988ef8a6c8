#include "gateway/request_writer.h"

#include <httplib.h>

#include <utility>

namespace stitchkit {
namespace {

// Where cpp-httplib writes its request to. There is nothing to read, so that it gives up once it has written.
class CollectingStream : public httplib::Stream {
 public:
  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  void get_remote_ip_and_port(std::string& address, int& port) const override { address.clear(), port = 0; }
  void get_local_ip_and_port(std::string& address, int& port) const override { address.clear(), port = 0; }
  socket_t socket() const override { return INVALID_SOCKET; }

  ssize_t write(const char* bytes, std::size_t size) override {
    written_.append(bytes, size);
    return static_cast<ssize_t>(size);
  }
  ssize_t read(char* /*buffer*/, std::size_t /*size*/) override { return 0; }

  std::string& written() { return written_; }

 private:
  std::string written_;
};

// The part of the client that is used. Dialling, TLS, reuse, redirects and proxies of the library stay out of it.
class WritingClient : public httplib::ClientImpl {
 public:
  WritingClient() : ClientImpl(std::string()) {
    set_url_encode(false);
    set_decompress(false);
    set_follow_location(false);
  }
  void run(CollectingStream& stream, httplib::Request& request, httplib::Response& response) {
    httplib::Error error{};
    process_request(stream, request, response, false, error);
  }
};

WritingClient& client() {
  thread_local WritingClient made;
  return made;
}

httplib::Request forLibrary(const UpstreamRequest& request) {
  httplib::Request made;
  made.method = request.method;
  made.path = request.target;
  for (const HeaderField& field : request.fields) {
    made.headers.emplace(field.name, field.value);
  }
  // A body as such would be given a content type.
  if (!request.body.empty()) {
    made.headers.emplace("content-length", std::to_string(request.body.size()));
    made.content_length_ = request.body.size();
    made.content_provider_ = [body = request.body](std::size_t offset, std::size_t length, httplib::DataSink& sink) {
      return sink.write(body.data() + offset, length);
    };
  }
  return made;
}

}  // namespace

std::string writeRequest(const UpstreamRequest& request) {
  CollectingStream stream;
  httplib::Request asked = forLibrary(request);
  httplib::Response nothing;
  client().run(stream, asked, nothing);
  return std::move(stream.written());
}

}  // namespace stitchkit
