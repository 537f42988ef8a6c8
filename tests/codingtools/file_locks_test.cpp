#include "codingtools/file_locks.h"

#include <catch2/catch.hpp>

#include <future>
#include <thread>
#include <vector>

using namespace stitchkit;

TEST_CASE("one at a time holds a file, and others go on") {
  FileLocks locks;
  int counter = 0;  // guarded by the lock of file 1
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&] {
        for (int round = 0; round < 2000; ++round) {
          const FileLocks::Held held = locks.lock({1, 1}, {});
          ++counter;
        }
      });
    }
  }
  CHECK(counter == 8000);
  const FileLocks::Held first = locks.lock({1, 1}, {});
  CHECK(bool(locks.lock({1, 2}, {})));
  CHECK(bool(locks.lock({2, 1}, {})));
}

TEST_CASE("who waits for a file can be told to stop") {
  FileLocks locks;
  const FileLocks::Held first = locks.lock({1, 1}, {});
  std::stop_source source;
  auto waiting = std::async(std::launch::async, [&] { return bool(locks.lock({1, 1}, source.get_token())); });
  source.request_stop();
  CHECK_FALSE(waiting.get());
}
