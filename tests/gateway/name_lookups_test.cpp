#include "gateway/name_lookups.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gateway/connection_places.h"
#include "rpc/base/limits.h"

namespace stitchkit {
namespace {

/// A resolver that answers a name when it is let.
class Resolver {
 public:
  Result<Endpoints> look(const std::string& host, std::uint16_t port) {
    std::unique_lock lock(state_->mutex);
    ++state_->asked[host];
    state_->changed.notify_all();
    state_->changed.wait(lock, [&] { return state_->answers.count(host) != 0; });
    if (!state_->answers[host]) {
      return Error(ErrorKind::kInternal, "no such name");
    }
    return Endpoints{{boost::asio::ip::make_address("8.8.8.8"), port}};
  }
  void answer(const std::string& host, bool found = true) {
    const std::lock_guard lock(state_->mutex);
    state_->answers[host] = found;
    state_->changed.notify_all();
  }
  void waitUntilAsked(const std::string& host, int times) {
    std::unique_lock lock(state_->mutex);
    REQUIRE(state_->changed.wait_for(lock, std::chrono::seconds(20), [&] { return state_->asked[host] >= times; }));
  }
  int timesAsked(const std::string& host) {
    const std::lock_guard lock(state_->mutex);
    return state_->asked[host];
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::string, bool> answers;
    std::map<std::string, int> asked;
  };

  std::shared_ptr<State> state_ = std::make_shared<State>();  // lookups outlive the test's part of it
};

struct LookupsScene {
  void find(const std::string& host, const std::string& as) {
    names->find(*parseOrigin("http://" + host),
                [this, as](const Result<Endpoints>& found) { told.push_back(as + (found ? "" : " failed")); });
  }
  void runUntilTold(std::size_t count) {
    while (told.size() < count) {
      context.run_one();
    }
  }

  Resolver resolver;
  std::vector<std::string> told;
  boost::asio::io_context context;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{context.get_executor()};
  std::shared_ptr<NameLookups> names = std::make_shared<NameLookups>(
      context,
      [resolver = resolver](const std::string& host, std::uint16_t port) mutable { return resolver.look(host, port); },
      false);
};

TEST_CASE("requests for one name wait for one lookup") {
  LookupsScene scene;
  for (const char* one : {"1", "2", "3"}) {
    scene.find("a.example", one);
  }
  const bool found = GENERATE(true, false);
  scene.resolver.answer("a.example", found);
  scene.runUntilTold(3);
  const std::string end = found ? "" : " failed";
  CHECK(scene.told == std::vector<std::string>{"1" + end, "2" + end, "3" + end});
  CHECK(scene.resolver.timesAsked("a.example") == 1);
}

TEST_CASE("nothing of a lookup is remembered") {
  LookupsScene scene;
  scene.resolver.answer("a.example");
  scene.find("a.example", "before");
  scene.runUntilTold(1);
  scene.resolver.answer("a.example", false);
  scene.find("a.example", "after");
  scene.runUntilTold(2);
  CHECK(scene.told == std::vector<std::string>{"before", "after failed"});
  CHECK(scene.resolver.timesAsked("a.example") == 2);
}

TEST_CASE("a name under another port is another lookup") {
  LookupsScene scene;
  scene.find("a.example", "80");
  scene.find("a.example:8080", "8080");
  scene.resolver.waitUntilAsked("a.example", 2);
  scene.resolver.answer("a.example");
  scene.runUntilTold(2);
}

TEST_CASE("names that are not answered hold up no other, until there are too many") {
  LookupsScene scene;
  for (std::size_t i = 1; i < limits::kGatewayLookups; ++i) {
    scene.find("slow" + std::to_string(i) + ".example", "slow");
  }
  scene.resolver.answer("a.example");
  scene.find("a.example", "quick");
  scene.runUntilTold(1);
  CHECK(scene.told == std::vector<std::string>{"quick"});
  scene.find("last.example", "last");
  CHECK(scene.told.size() == 1);
  scene.find("b.example", "one too many");
  CHECK(scene.told.back() == "one too many failed");
  // Those that wait for a lookup that is under way are not further ones; addresses need none.
  scene.find("last.example", "last again");
  CHECK(scene.told.size() == 2);
  scene.find("127.0.0.1", "address");
  CHECK(scene.told.back() == "address");
  scene.resolver.answer("last.example");
  scene.runUntilTold(5);
  scene.resolver.answer("b.example");
  scene.find("b.example", "room");
  scene.runUntilTold(6);
  CHECK(scene.told.back() == "room");
  for (std::size_t i = 1; i < limits::kGatewayLookups; ++i) {
    scene.resolver.answer("slow" + std::to_string(i) + ".example");
  }
  scene.runUntilTold(6 + limits::kGatewayLookups - 1);
}

TEST_CASE("a request may ask again when it is told") {
  LookupsScene scene;
  scene.resolver.answer("a.example");
  scene.names->find(*parseOrigin("http://a.example"),
                    [&](const Result<Endpoints>&) { scene.find("a.example", "again"); });
  scene.runUntilTold(1);
  CHECK(scene.resolver.timesAsked("a.example") == 2);
}

TEST_CASE("an answer that comes when nobody is left is dropped") {
  LookupsScene scene;
  scene.find("a.example", "never");
  scene.resolver.waitUntilAsked("a.example", 1);
  scene.names.reset();
  scene.resolver.answer("a.example");
  REQUIRE(scene.context.run_one_for(std::chrono::seconds(20)) == 1);
  CHECK(scene.told.empty());
}

TEST_CASE("handles share the descriptors that are set aside for guests") {
  ConnectionPlaces places(1024);
  CHECK(places.perHandle() == 64);
  places.handleOpened();
  places.handleOpened();
  CHECK(places.perHandle() == 64);
  places.handleOpened();
  places.handleOpened();
  CHECK(places.perHandle() == 32);
  for (int i = 0; i < 100; ++i) {
    places.handleOpened();
  }
  CHECK(places.perHandle() == 8);
  for (int i = 0; i < 102; ++i) {
    places.handleClosed();
  }
  CHECK(places.perHandle() == 64);
  CHECK(ConnectionPlaces(1048576).perHandle() == limits::kGatewayConnections);
}

}  // namespace
}  // namespace stitchkit
