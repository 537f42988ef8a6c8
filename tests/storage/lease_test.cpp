#include "backend/storage/lease.h"

#include "tests/codingtools/test_files.h"

#include <sys/file.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

using namespace stitchkit;
using namespace stitchkit::test;

namespace {

/// A session's directory and private directories for owners.
struct Place {
  TemporaryDirectory base;
  std::string session = base / "session";
  std::string lease = session + "/lease";

  Place() { REQUIRE(::mkdir(session.c_str(), 0700) == 0); }

  [[nodiscard]] Result<Lease> acquire() const {
    std::string own = base / "owner-XXXXXX";
    const UniqueFd directory(::open(session.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const UniqueFd staging(::open(::mkdtemp(own.data()), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return Lease::acquire(directory.get(), staging.get());
  }
  [[nodiscard]] bool busy() const {
    const Result<Lease> taken = acquire();
    return taken.has_error() && taken.error().kind == ErrorKind::kBusy;
  }
};

/// A process that holds the lease until it is killed.
pid_t startOwner(const Place& place) {
  int ready[2];
  REQUIRE(::pipe2(ready, O_CLOEXEC) == 0);
  const pid_t child = startChild([&] {
    const Result<Lease> lease = place.acquire();
    static_cast<void>(!::write(ready[1], lease ? "y" : "n", 1));
    for (;;) {
      ::pause();
    }
    return 0;
  });
  char answer = 0;
  REQUIRE(::read(ready[0], &answer, 1) == 1);
  REQUIRE(answer == 'y');
  ::close(ready[0]);
  ::close(ready[1]);
  return child;
}

}  // namespace

TEST_CASE("a lease is exclusive in one process, and gone when freed") {
  const Place place;
  {
    const Lease lease = place.acquire().value();
    CHECK_FALSE(lease.tookOver());
    CHECK(place.busy());
    const auto text = nlohmann::json::parse(readText(place.lease));
    CHECK(text["format"] == "stitchkit-sandbox lease 1");
    CHECK(text["pid"] == std::to_string(::getpid()));
    CHECK(modeOf(place.lease) == 0600);
  }
  CHECK_FALSE(exists(place.lease));
  CHECK_FALSE(place.acquire().value().tookOver());
}

TEST_CASE("an abandoned lease is taken over") {
  const Place place;
  place.acquire().value().abandon();
  CHECK(exists(place.lease));
  CHECK(place.acquire().value().tookOver());
}

TEST_CASE("a stopped owner keeps its lease, a killed one loses it") {
  const Place place;
  const pid_t owner = startOwner(place);
  CHECK(place.busy());
  ::kill(owner, SIGSTOP);
  CHECK(place.busy());
  ::kill(owner, SIGCONT);
  CHECK(place.busy());
  ::kill(owner, SIGKILL);
  waitFor(owner);
  const Lease lease = place.acquire().value();
  CHECK(lease.tookOver());
  CHECK(place.busy());
}

TEST_CASE("neither a reused PID nor a copied file matters") {
  const Place place;
  writeText(place.lease, R"({"format":"stitchkit-sandbox lease 1","program":"stitchkit-sandbox","pid":")" +
                             std::to_string(::getppid()) + "\",\"since\":\"2020-01-01T00:00:00Z\"}\n");
  std::optional<Lease> lease(place.acquire().value());
  CHECK(lease->tookOver());
  // An operator's copy put in its place: not the file that is locked.
  std::filesystem::copy_file(place.lease, place.base / "copy");
  std::filesystem::rename(place.base / "copy", place.lease);
  lease.reset();
  CHECK(exists(place.lease));
  CHECK(place.acquire().value().tookOver());
}

TEST_CASE("a lease that is not ours is left alone") {
  const Place place;
  const auto foreignText = GENERATE(as<std::string>{}, "", "12345\n", "{}", R"({"format":"another"})", "\xff\xfe");
  writeText(place.lease, foreignText);
  const Result<Lease> lease = place.acquire();
  REQUIRE(lease.has_error());
  CHECK(lease.error().kind == ErrorKind::kBusy);
  CHECK(lease.error().hint.find("operator") != std::string::npos);
  CHECK(readText(place.lease) == foreignText);
}

TEST_CASE("what stands in a lease's place and is no file is left alone") {
  const Place place;
  const int kind = GENERATE(0, 1, 2);
  if (kind == 0) {
    std::filesystem::create_symlink("/etc/passwd", place.lease);
  } else if (kind == 1) {
    std::filesystem::create_directory(place.lease);
  } else {
    REQUIRE(::mkfifo(place.lease.c_str(), 0600) == 0);
  }
  CHECK(place.busy());
  CHECK(exists(place.lease));
}

TEST_CASE("of two racers for a dead owner's lease exactly one wins") {
  const Place place;
  for (int round = 0; round < 100; ++round) {
    if (round % 2 == 0) {
      const pid_t owner = startOwner(place);
      ::kill(owner, SIGKILL);
      waitFor(owner);
    }
    int start[2];
    int decided[2];
    REQUIRE(::pipe2(start, O_CLOEXEC) == 0);
    REQUIRE(::pipe2(decided, O_CLOEXEC) == 0);
    const auto racer = [&] {
      char go = 0;
      ::close(start[1]);
      static_cast<void>(!::read(start[0], &go, 1));
      const Result<Lease> lease = place.acquire();
      static_cast<void>(!::write(decided[1], lease ? "w" : "l", 1));
      // Holds it until both have decided.
      ::close(decided[1]);
      while (::read(decided[0], &go, 1) > 0) {
      }
      return lease ? 0 : lease.error().kind == ErrorKind::kBusy ? 1 : 2;
    };
    const pid_t first = startChild(racer);
    const pid_t second = startChild(racer);
    ::close(start[0]);
    ::close(start[1]);
    ::close(decided[1]);
    const int codes = waitFor(first) * 10 + waitFor(second);
    ::close(decided[0]);
    INFO(round);
    REQUIRE((codes == 1 || codes == 10));
    REQUIRE_FALSE(exists(place.lease));
  }
}

TEST_CASE("owners in many threads never overlap") {
  const Place place;
  std::atomic<int> inside{0};
  std::atomic<int> overlaps{0};
  std::atomic<int> wins{0};
  {
    std::vector<std::jthread> threads;
    for (int index = 0; index < 4; ++index) {
      threads.emplace_back([&] {
        for (int round = 0; round < 300; ++round) {
          Result<Lease> lease = place.acquire();
          if (lease) {
            overlaps += inside.fetch_add(1) != 0 ? 1 : 0;
            ++wins;
            inside.fetch_sub(1);
            if (round % 3 == 0) {
              lease->abandon();
            }
          }
        }
      });
    }
  }
  CHECK(overlaps == 0);
  CHECK(wins > 0);
}
