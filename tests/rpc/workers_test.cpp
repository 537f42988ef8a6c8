#include "rpc/workers.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "rpc/base/limits.h"
#include "rpc/reply.h"
#include "tests/rpc/queue_loop.h"

namespace stitchkit {
namespace {

using Kind = Workers::Kind;

/// A job that stands still until the test lets it go.
class Gate {
 public:
  void enter() {
    entered_.set_value();
    opened_.wait();
  }
  void waitUntilEntered() { entered_.get_future().wait(); }
  void open() { open_.set_value(); }

 private:
  std::promise<void> entered_;
  std::promise<void> open_;
  std::shared_future<void> opened_ = open_.get_future().share();
};

}  // namespace

TEST_CASE("workers: work runs elsewhere, its result comes back on the loop", "[workers]") {
  QueueLoop loop;
  Workers workers(loop, 2);
  std::thread::id worker;
  std::thread::id receiver;
  std::unique_ptr<std::string> result;
  workers.run(
      Kind::kRequest, 0,
      [&worker] {
        worker = std::this_thread::get_id();
        return std::make_unique<std::string>("made there");  // results that only move are moved
      },
      [&](std::unique_ptr<std::string> made) {
        receiver = std::this_thread::get_id();
        result = std::move(made);
      });
  loop.runUntil([&] { return result != nullptr; });
  CHECK(*result == "made there");
  CHECK(worker != std::this_thread::get_id());
  CHECK(receiver == std::this_thread::get_id());
}

TEST_CASE("workers: the result and what waits for it are let go on the loop", "[workers]") {
  QueueLoop loop;
  // Both are let go before the job ends, or by the job at its end.
  std::vector<std::thread::id> letGo;
  const auto watched = [&letGo] {
    return std::shared_ptr<void>(nullptr, [&letGo](void*) { letGo.push_back(std::this_thread::get_id()); });
  };
  {
    Workers workers(loop, 1);
    std::promise<void> delivered;
    bool done = false;
    {
      const std::shared_ptr<void> held = watched();
      workers.run(
          Kind::kRequest, 0, watched, [held, &done](const std::shared_ptr<void>&) { done = true; },
          [got = delivered.get_future().share()] { got.wait(); });
    }
    loop.runUntil([&done] { return done; });
    delivered.set_value();
  }
  CHECK(letGo == std::vector<std::thread::id>(2, std::this_thread::get_id()));
}

TEST_CASE("workers: one thread keeps the order, several run at once", "[workers]") {
  QueueLoop loop;
  {
    Workers workers(loop, 1);
    std::vector<int> order;
    for (int i = 0; i < 100; ++i) {
      workers.run(
          Kind::kRequest, 0, [i] { return i; }, [&order](int done) { order.push_back(done); });
    }
    loop.runUntil([&] { return order.size() == 100; });
    CHECK(std::is_sorted(order.begin(), order.end()));
  }
  {
    Workers workers(loop, 2);
    // Each waits for the other: with one thread this would never end.
    std::promise<void> left;
    std::promise<void> right;
    int done = 0;
    workers.run(
        Kind::kRequest, 0,
        [&] {
          left.set_value(), right.get_future().wait();
          return 0;
        },
        [&](int) { ++done; });
    workers.run(
        Kind::kRequest, 0,
        [&] {
          right.set_value(), left.get_future().wait();
          return 0;
        },
        [&](int) { ++done; });
    loop.runUntil([&] { return done == 2; });
  }
}

TEST_CASE("workers: threads that begin when they are needed", "[workers]") {
  QueueLoop loop;
  Workers workers(loop, 3, Workers::Begin::kWhenNeeded);
  // Each waits for the others: with less than three threads this would never end.
  std::barrier together(3);
  int done = 0;
  for (int i = 0; i < 3; ++i) {
    workers.run(
        Kind::kRequest, 0, [&] { return together.arrive_and_wait(), 0; }, [&](int) { ++done; });
  }
  loop.runUntil([&] { return done == 3; });
}

TEST_CASE("workers: while held no request starts, internal work goes on", "[workers]") {
  QueueLoop loop;
  Workers workers(loop, 2);
  std::vector<std::string> done;
  const auto note = [&done](std::string what) { done.push_back(std::move(what)); };
  workers.holdRequests(true);
  workers.run(
      Kind::kRequest, 0, [] { return std::string("request"); }, note);
  workers.run(
      Kind::kInternal, 0, [] { return std::string("stop"); }, note);
  workers.run(
      Kind::kInternal, 0, [] { return std::string("delete"); }, note);
  loop.runUntil([&] { return done.size() == 2; });
  workers.run(
      Kind::kInternal, 0, [] { return std::string("publish"); }, note);
  loop.runUntil([&] { return done.size() == 3; });
  CHECK(std::count(done.begin(), done.end(), "request") == 0);
  workers.holdRequests(false);
  loop.runUntil([&] { return done.size() == 4; });
  CHECK(done.back() == "request");
}

TEST_CASE("workers: congestion by count and by bytes, and its relief once", "[workers]") {
  QueueLoop loop;
  Gate gate;
  Workers workers(loop, 1);
  int relieved = 0;
  int done = 0;
  workers.onRelieved([&] { ++relieved; });
  workers.run(
      Kind::kInternal, 0,
      [&] {
        gate.enter();
        return 0;
      },
      [&](int) { ++done; });
  gate.waitUntilEntered();
  const bool byBytes = GENERATE(true, false);
  std::size_t waiting = 0;
  while (!workers.congested() && waiting < 10 * limits::kQueuedRequests) {
    workers.run(
        Kind::kRequest, byBytes ? limits::kQueuedRequestBytes / 4 : 1, [] { return 0; }, [&](int) { ++done; });
    ++waiting;
  }
  CHECK(waiting == (byBytes ? 4 : limits::kQueuedRequests));
  // Internal work does not count.
  CHECK(relieved == 0);
  gate.open();
  loop.runUntil([&] { return done == static_cast<int>(waiting) + 1; });
  loop.drain();
  CHECK(relieved == 1);
  CHECK_FALSE(workers.congested());
}

TEST_CASE("workers: no more results wait for the loop than may", "[workers]") {
  QueueLoop loop;
  constexpr unsigned kThreads = 4;
  Workers workers(loop, kThreads);
  std::atomic<int> made{0};
  int delivered = 0;
  int mostWaiting = 0;
  for (int i = 0; i < 200; ++i) {
    workers.run(
        Kind::kRequest, 1, [&made] { return ++made; },
        [&](int) {
          mostWaiting = std::max(mostWaiting, made - delivered);
          ++delivered;
        });
  }
  while (made < static_cast<int>(limits::kUndeliveredResults)) {
    std::this_thread::yield();
  }
  loop.runUntil([&] { return delivered == 200; });
  CHECK(mostWaiting <= static_cast<int>(limits::kUndeliveredResults + kThreads));
}

TEST_CASE("workers: internal work does not congest", "[workers]") {
  QueueLoop loop;
  Gate gate;
  Workers workers(loop, 1);
  int done = 0;
  workers.run(
      Kind::kInternal, 0,
      [&] {
        gate.enter();
        return 0;
      },
      [&](int) { ++done; });
  gate.waitUntilEntered();
  for (std::size_t i = 0; i < limits::kQueuedRequests + 10; ++i) {
    workers.run(
        Kind::kInternal, limits::kQueuedRequestBytes, [] { return 0; }, [&](int) { ++done; });
  }
  CHECK_FALSE(workers.congested());
  gate.open();
  loop.runUntil([&] { return done == static_cast<int>(limits::kQueuedRequests) + 11; });
}

TEST_CASE("workers: the destructor waits for what runs and drops what waits", "[workers]") {
  QueueLoop loop;
  auto token = std::make_shared<int>(0);
  std::atomic<bool> finished{false};
  std::atomic<int> started{0};
  std::thread opener;
  {
    Workers workers(loop, 1);
    auto gate = std::make_shared<Gate>();
    workers.run(
        Kind::kRequest, 0,
        [gate, &finished] {
          gate->enter();
          finished = true;
          return 0;
        },
        [](int) {});
    for (int i = 0; i < 50; ++i) {
      workers.run(
          i % 2 == 0 ? Kind::kRequest : Kind::kInternal, 1, [&started] { return ++started; }, [token](int) {});
    }
    gate->waitUntilEntered();
    opener = std::thread([gate] { gate->open(); });
    // The gate may open before or after the destructor begins; both must end.
  }
  opener.join();
  CHECK(finished);
  loop.drain();
  CHECK(token.use_count() == 1);  // no job is left, neither run nor dropped
}

TEST_CASE("workers: a dropped job answers its request", "[workers]") {
  QueueLoop loop;
  int answers = 0;
  {
    Workers workers(loop, 1);
    workers.holdRequests(true);
    auto reply = std::make_shared<JsonReply>([&](Result<boost::json::value> result) {
      ++answers;
      CHECK(result.has_error());
    });
    workers.run(
        Kind::kRequest, 0, [] { return 1; }, [reply](int made) { (*reply)(boost::json::value(made)); });
    reply.reset();
  }
  CHECK(answers == 1);
}

}  // namespace stitchkit
