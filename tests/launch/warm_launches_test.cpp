// Launches that wait, where the wire cannot see them: what is started when, and who gets what.
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include "backend/launch/warm_launches.h"
#include "rpc/base/limits.h"
#include "tests/launch/launch_fixture.h"

using namespace stitchkit;
using namespace stitchkit::test;

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kEach = 4;

/// A bwrap that writes a line for each start of it.
class CountingBubblewrap {
 public:
  CountingBubblewrap(const LaunchFixture& fixture, const std::string& then)
      : program_(fixture.workspace() + "/counting"), starts_(fixture.workspace() + "/starts") {
    writeFile(program_, "#!/bin/sh\necho >> " + starts_ + "\n" + then + "\n", 0755);
  }
  [[nodiscard]] const std::string& program() const { return program_; }
  [[nodiscard]] std::size_t starts() const { return readFile(starts_).size(); }

 private:
  std::string program_;
  std::string starts_;
};

struct Pool {
  explicit Pool(LaunchFixture& fixture, std::size_t each = kEach)
      : Pool(fixture, std::make_shared<const PreparedProfile>(fixture.prepared()), each) {}
  Pool(LaunchFixture& fixture, std::shared_ptr<const PreparedProfile> prepared, std::size_t each = kEach)
      : io(fixture.io), profile(std::move(prepared)), launches(io, each), pool(launches.pool(profile)) {}

  // Nothing of a pool keeps the loop running but what it has started, so that its end is the end of all of it.
  ~Pool() {
    pool->close();
    pool->end();
    pool.reset();
    io.restart();
    io.run();
  }

  /// Runs the loop until `condition` holds, for 15 s at most; says whether it came.
  template <class Condition>
  bool until(Condition condition) {
    const auto end = Clock::now() + std::chrono::seconds(15);
    while (!condition()) {
      if (Clock::now() > end) {
        return false;
      }
      io.restart();
      io.run_for(milliseconds(1));
    }
    return true;
  }
  void runFor(milliseconds time) {
    io.restart();
    io.run_for(time);
  }

  std::optional<Result<GuestOutcome>> run(const Command& command, std::shared_ptr<SandboxProcess> sandbox) {
    std::optional<Result<GuestOutcome>> result;
    GuestOptions options;
    options.sandbox = std::move(sandbox);
    const auto guest = Guest::start(io, *profile, command, {}, std::move(options),
                                    [&result](Result<GuestOutcome> outcome) { result.emplace(std::move(outcome)); });
    until([&] { return result.has_value(); });
    return result;
  }

  /// Takes what no pool has, so that it grows to its most, and waits for that.
  void fill() {
    for (std::size_t i = 0; i < kEach + 1; ++i) {
      const WarmPool::Taken taken = pool->take();
      if (taken.sandbox) {
        taken.sandbox->kill();
      }
      pool->ended(taken.command);
    }
    REQUIRE(until([&] { return liveSandboxes() == static_cast<int>(kProcesses * kEach); }));
  }

  static constexpr std::size_t kProcesses = 2;  // that are bwrap's program, of one that waits

  boost::asio::io_context& io;
  std::shared_ptr<const PreparedProfile> profile;
  WarmLaunches launches;
  std::shared_ptr<WarmPool> pool;
};

}  // namespace

TEST_CASE("a bubblewrap that fails is not started again and again", "[warm]") {
  LaunchFixture fixture;
  const CountingBubblewrap fake(fixture, "exit 1");
  const auto profile = std::make_shared<const PreparedProfile>(fake.program(), fixture.profile(), DirectoryIdentity{});
  {
    Pool pool(fixture, profile);
    const auto others = {pool.launches.pool(profile), pool.launches.pool(profile), pool.launches.pool(profile)};
    // Commands come meanwhile and find none: all four pools want what they may have.
    for (std::size_t i = 0; i < kEach; ++i) {
      for (const auto& one : others) {
        one->ended(one->take().command);
      }
      pool.pool->ended(pool.pool->take().command);
    }
    REQUIRE(pool.until([&] { return fake.starts() != 0; }));
    pool.runFor(milliseconds(2500));
    // A processor's worth or two at first, and that again after each second.
    CHECK(fake.starts() <= 8 * std::max(1U, std::thread::hardware_concurrency()));
    for (const auto& one : others) {
      one->close();
      one->end();
    }
  }
  CHECK(zombies() == 0);
}

TEST_CASE("a bubblewrap that cannot be started is tried again, and works once it can", "[warm]") {
  LaunchFixture fixture;
  const std::string program = fixture.workspace() + "/later";
  const auto profile =
      std::make_shared<const PreparedProfile>(program, fixture.profile(), fixture.prepared().workspace());
  Pool pool(fixture, profile);
  pool.runFor(milliseconds(100));
  std::filesystem::copy_file("/usr/bin/bwrap", program);
  REQUIRE(pool.until([&] { return liveSandboxes(program) != 0; }));
  const std::shared_ptr<SandboxProcess> taken = pool.pool->take().sandbox;
  REQUIRE(taken != nullptr);
  const auto result = pool.run(LaunchFixture::shell("echo late"), taken);
  REQUIRE(result.has_value());
  REQUIRE(result->has_value());
  CHECK((*result)->standardOutput == "late\n");
}

TEST_CASE("one that is still being set up can be taken", "[warm]") {
  LaunchFixture fixture;
  Pool pool(fixture);
  // In a turn of the loop of its own, whose other events have not come yet.
  std::shared_ptr<SandboxProcess> taken;
  REQUIRE(pool.until([&] { return liveSandboxes() != 0 && (taken = pool.pool->take().sandbox) != nullptr; }));
  const auto result = pool.run(LaunchFixture::shell("echo ran; echo ran >> /workspace/log"), taken);
  REQUIRE(result.has_value());
  REQUIRE(result->has_value());
  CHECK((*result)->standardOutput == "ran\n");
  CHECK(readFile(fixture.workspace() + "/log") == "ran\n");
}

TEST_CASE("one that is taken in set-up and fails there is the command's error", "[warm]") {
  LaunchFixture fixture;
  const CountingBubblewrap fake(fixture, "sleep 0.2; exit 1");
  Pool pool(fixture, std::make_shared<const PreparedProfile>(fake.program(), fixture.profile(), DirectoryIdentity{}),
            1);
  REQUIRE(pool.until([&] { return fake.starts() == 1; }));
  WarmPool::Taken taken = pool.pool->take();
  REQUIRE(taken.sandbox != nullptr);
  CHECK_FALSE(taken.sandbox->ready());
  const auto result = pool.run(LaunchFixture::command("/usr/bin/true"), taken.sandbox);
  REQUIRE(result.has_value());
  REQUIRE_FALSE(result->has_value());
  CHECK(result->error().kind == ErrorKind::kUnavailable);
}

TEST_CASE("none is handed out twice, and none that does not wait", "[warm]") {
  LaunchFixture fixture;
  Pool pool(fixture);
  pool.fill();
  std::vector<std::shared_ptr<SandboxProcess>> all;
  for (std::size_t i = 0; i < kEach; ++i) {
    all.push_back(pool.pool->take().sandbox);
    REQUIRE(all.back() != nullptr);
    CHECK(pool.until([&] { return all.back()->ready(); }));
    CHECK(all.back()->waits());
    CHECK(std::count(all.begin(), all.end(), all.back()) == 1);
  }
  CHECK(pool.pool->take().sandbox == nullptr);
  for (const auto& one : all) {
    one->kill();
    CHECK_FALSE(one->waits());
  }
}

TEST_CASE("between suspend and resume there are none, whatever was being set up", "[warm]") {
  LaunchFixture fixture;
  Pool pool(fixture);
  const bool inSetUp = GENERATE(true, false);
  if (inSetUp) {
    REQUIRE(pool.until([&] { return liveSandboxes() != 0; }));
  } else {
    pool.fill();
  }
  pool.pool->suspend();
  CHECK(pool.pool->take().sandbox == nullptr);
  REQUIRE(pool.until([&] { return liveSandboxes() == 0; }));
  CHECK(pool.pool->take().sandbox == nullptr);
  pool.runFor(milliseconds(200));
  CHECK(liveSandboxes() == 0);
  CHECK(zombies() == 0);

  LaunchProfile open = fixture.profile();
  open.network = NetworkMode::kHost;
  pool.profile = std::make_shared<const PreparedProfile>(fixture.prepared(open));
  pool.pool->resume(pool.profile);
  std::shared_ptr<SandboxProcess> taken;
  REQUIRE(pool.until([&] { return liveSandboxes() != 0 && (taken = pool.pool->take().sandbox) != nullptr; }));
  const auto result = pool.run(LaunchFixture::shell("readlink /proc/self/ns/net"), taken);
  REQUIRE(result.has_value());
  REQUIRE(result->has_value());
  CHECK((*result)->standardOutput == std::filesystem::read_symlink("/proc/self/ns/net").string() + "\n");
}

TEST_CASE("a pool that is gone leaves nothing", "[warm]") {
  LaunchFixture fixture;
  { const Pool first(fixture); }  // the loop has descriptors of its own from its first use on
  const int before = openDescriptors();
  {
    Pool pool(fixture);
    pool.fill();
    CHECK(openDescriptors() > before);
  }
  CHECK(liveSandboxes() == 0);
  CHECK(zombies() == 0);
  CHECK(openDescriptors() == before);
}

TEST_CASE("without a number of launches there are none", "[warm]") {
  LaunchFixture fixture;
  Pool pool(fixture, 0);
  for (int i = 0; i < 5; ++i) {
    const WarmPool::Taken taken = pool.pool->take();
    CHECK(taken.sandbox == nullptr);
    pool.runFor(milliseconds(20));
    pool.pool->ended(taken.command);
  }
  CHECK(liveSandboxes() == 0);
}
