#include "gateway/http_exchange.h"

#include <httplib.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "rpc/base/limits.h"

namespace stitchkit {
namespace {

// Where cpp-httplib writes its request and reads its response. Small writes are gathered, so that header and body leave
// together. An upstream may answer and close before it has read everything, so that a failed write is not yet a failure.
class FencedStream : public httplib::Stream {
 public:
  FencedStream(UpstreamConnection& connection, ResponseFence fence, const CancelSignal& signal,
               GatewayClock::time_point deadline)
      : connection_(connection), fence_(std::move(fence)), signal_(signal), deadline_(deadline) {}

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  void get_remote_ip_and_port(std::string& address, int& port) const override { address.clear(), port = 0; }
  void get_local_ip_and_port(std::string& address, int& port) const override { address.clear(), port = 0; }
  socket_t socket() const override { return connection_.descriptor(); }

  ssize_t write(const char* bytes, std::size_t size) override {
    unsent_.append(bytes, size);
    if (unsent_.size() >= kGathered) {
      flush();
    }
    return static_cast<ssize_t>(size);
  }

  ssize_t read(char* buffer, std::size_t size) override {
    if (!response_ && !receive()) {
      return -1;
    }
    const std::string& from = read_ < libraryHeader_.size() ? libraryHeader_ : response_->body;
    const std::size_t offset = read_ < libraryHeader_.size() ? read_ : read_ - libraryHeader_.size();
    const std::size_t step = std::min(size, from.size() - offset);
    std::memcpy(buffer, from.data() + offset, step);
    read_ += step;
    return static_cast<ssize_t>(step);
  }

  std::optional<UpstreamResponse>& response() { return response_; }
  ExchangeFailure failure() const { return {failure_, !fence_.begun()}; }

 private:
  static constexpr std::size_t kGathered = 64U * 1024;

  void flush() {
    if (writable_) {
      if (Result<void> written = connection_.write(unsent_, signal_, deadline_); !written) {
        writable_ = false;
        failure_ = std::move(written).error();
      }
    }
    unsent_.clear();
  }

  bool receive() {
    flush();
    if (!writable_ && failure_.kind != ErrorKind::kInternal) {
      return false;  // no time left
    }
    thread_local std::vector<char> buffer(16U * 1024);
    while (!fence_.complete()) {
      const Result<std::size_t> got = connection_.read(buffer.data(), buffer.size(), signal_, deadline_);
      if (!got) {
        failure_ = writable_ || fence_.begun() ? got.error() : failure_;
        return false;
      }
      const Result<void> fed = *got == 0 ? fence_.end() : fence_.feed({buffer.data(), *got});
      if (!fed) {
        failure_ = fed.error();
        return false;
      }
    }
    response_ = fence_.take();
    response_->keepAlive = response_->keepAlive && writable_;
    // The library gets a response that cannot be misread, and its body comes back from there.
    libraryHeader_ = "HTTP/1.1 " + std::to_string(response_->status) + " -\r\nContent-Length: " +
                  std::to_string(response_->body.size()) + "\r\n\r\n";
    return true;
  }

  UpstreamConnection& connection_;
  ResponseFence fence_;
  const CancelSignal& signal_;
  GatewayClock::time_point deadline_;
  std::string unsent_;
  bool writable_ = true;
  Error failure_{ErrorKind::kInternal, "The upstream request failed"};
  std::optional<UpstreamResponse> response_;
  std::string libraryHeader_;
  std::size_t read_ = 0;  // of libraryHeader_ and the body behind it
};

// The part of the client that is used: a request written and a response read on a stream of ours. Dialling, TLS, reuse,
// redirects and proxies of the library stay out of it.
class ExchangeClient : public httplib::ClientImpl {
 public:
  ExchangeClient() : ClientImpl(std::string()) {
    set_url_encode(false);
    set_decompress(false);
    set_follow_location(false);
  }
  bool run(httplib::Stream& stream, httplib::Request& request, httplib::Response& response, httplib::Error& error) {
    return process_request(stream, request, response, false, error);
  }
};

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

void throw_exception_from_error(const ExchangeFailure& failure, const boost::source_location& where) {
  throw_exception_from_error(failure.error, where);
}

boost::system::result<UpstreamResponse, ExchangeFailure> exchange(UpstreamConnection& connection,
                                                                  const UpstreamRequest& request,
                                                                  std::uint64_t responseLimit,
                                                                  const CancelSignal& signal,
                                                                  GatewayClock::time_point deadline) {
  FencedStream stream(connection, ResponseFence(request.method == "HEAD", responseLimit), signal, deadline);
  ExchangeClient client;
  httplib::Request asked = forLibrary(request);
  httplib::Response answered;
  httplib::Error libraryError{};
  const bool done = client.run(stream, asked, answered, libraryError);
  if (!done || !stream.response()) {
    return stream.failure();
  }
  UpstreamResponse response = std::move(*stream.response());
  response.status = static_cast<unsigned>(answered.status);
  response.body = std::move(answered.body);
  return response;
}

}  // namespace stitchkit
