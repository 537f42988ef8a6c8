#include "gateway/upstream_pool.h"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "rpc/base/limits.h"
#include "tests/gateway/peers.h"

namespace stitchkit {
namespace {

using namespace testing;

/// Connections to one doorway, and their other ends.
class PoolScene {
 public:
  std::unique_ptr<UpstreamConnection> connect() {
    TcpSocket socket(context_);
    socket.connect({boost::asio::ip::make_address("127.0.0.1"), doorway_.port()});
    ends.push_back(doorway_.accept());
    return std::make_unique<UpstreamConnection>(std::move(socket), nullptr);
  }
  void put(const std::string& origin) { pool.put(*parseOrigin(origin), connect()); }
  std::unique_ptr<UpstreamConnection> take(const std::string& origin) { return pool.take(*parseOrigin(origin)); }

 private:
  boost::asio::io_context context_;
  Doorway doorway_;

 public:
  UpstreamPool pool;
  std::vector<Wire> ends;
};

/// The connection's other end gets what is written to it.
bool leadsTo(UpstreamConnection& connection, Wire& end) {
  REQUIRE(connection.write("x").has_value());
  return end.readable(kPatienceMs) && end.readExactly(1) == "x";
}

TEST_CASE("a kept connection serves its own origin only, and once") {
  PoolScene scene;
  CHECK(scene.take("http://a.example") == nullptr);
  scene.put("http://a.example");
  for (const char* other : {"https://a.example", "http://a.example:8080", "http://b.example", "https://a.example:80"}) {
    CHECK(scene.take(other) == nullptr);
  }
  CHECK(scene.take("http://a.example:80") != nullptr);
  CHECK(scene.take("http://a.example") == nullptr);
}

TEST_CASE("the connection that waited least goes first") {
  PoolScene scene;
  scene.put("http://a.example");
  scene.put("http://b.example");
  scene.put("http://a.example");
  CHECK(leadsTo(*scene.take("http://a.example"), scene.ends[2]));
  CHECK(leadsTo(*scene.take("http://a.example"), scene.ends[0]));
  CHECK(leadsTo(*scene.take("http://b.example"), scene.ends[1]));
}

TEST_CASE("a connection on which something came unasked is not used") {
  PoolScene scene;
  scene.put("http://a.example");
  scene.put("http://a.example");
  scene.put("http://a.example");
  scene.put("http://a.example");
  scene.ends[1].send("HTTP/1.1 200 OK\r\n");
  scene.ends[2].close();
  scene.ends[3].reset();
  const auto taken = scene.take("http://a.example");
  REQUIRE(taken != nullptr);
  CHECK(leadsTo(*taken, scene.ends[0]));
  CHECK(scene.take("http://a.example") == nullptr);
}

TEST_CASE("with too many kept the oldest is closed") {
  PoolScene scene;
  for (std::size_t i = 0; i < limits::kUpstreamIdleConnections; ++i) {
    scene.put("http://a" + std::to_string(i) + ".example");
  }
  CHECK_FALSE(scene.ends[0].readable());
  scene.put("http://last.example");
  scene.ends[0].expectEnd();
  CHECK_FALSE(scene.ends[1].readable());
  CHECK(scene.take("http://a0.example") == nullptr);
  CHECK(scene.take("http://a1.example") != nullptr);
  CHECK(scene.take("http://last.example") != nullptr);
}

TEST_CASE("a pool that is emptied closes what it kept") {
  PoolScene scene;
  scene.put("http://a.example");
  CHECK(scene.pool.dropStale());
  scene.pool.clear();
  scene.ends[0].expectEnd();
  CHECK_FALSE(scene.pool.dropStale());
}

}  // namespace
}  // namespace stitchkit
