#include "backend/storage/staging.h"

#include "tests/storage/test_storage.h"

#include <csignal>
#include <thread>

using namespace stitchkit;
using namespace stitchkit::test;

TEST_CASE("an entry lives as long as its owner") {
  const StateDirectory state;
  {
    const StagingEntry entry = StagingEntry::make(state.layout()).value();
    writeText(entry.path() + "/f", "x");
    sweepStaging(state.layout());
    CHECK(exists(entry.path() + "/f"));
  }
  CHECK(state.stagingIsEmpty());
}

TEST_CASE("a sweep takes what dead owners left and nothing else") {
  const StateDirectory state;
  const StagingEntry alive = StagingEntry::make(state.layout()).value();
  int ready[2];
  REQUIRE(::pipe2(ready, O_CLOEXEC) == 0);
  const pid_t child = startChild([&] {
    const StagingEntry entry = StagingEntry::make(state.layout()).value();
    writeText(entry.path() + "/f", "x");
    static_cast<void>(!::write(ready[1], "y", 1));
    ::pause();
    return 0;
  });
  char answer = 0;
  REQUIRE(::read(ready[0], &answer, 1) == 1);
  sweepStaging(state.layout());
  CHECK(StateDirectory::listed(state.area("staging")).size() == 2);
  ::kill(child, SIGKILL);
  waitFor(child);
  ::close(ready[0]);
  ::close(ready[1]);
  writeText(state.area("staging") + "/stray file", "x");
  std::filesystem::create_symlink("/etc", state.area("staging") + "/stray link");
  REQUIRE(::mkdir((state.area("staging") + "/locked").c_str(), 0000) == 0);
  sweepStaging(state.layout());
  CHECK(StateDirectory::listed(state.area("staging")).size() == 1);
  CHECK(exists(alive.path()));
}

TEST_CASE("sweepers and owners at once do no harm") {
  const StateDirectory state;
  std::atomic<bool> done{false};
  std::jthread sweeper([&] {
    while (!done) {
      sweepStaging(state.layout());
    }
  });
  int broken = 0;
  for (int round = 0; round < 2000; ++round) {
    const Result<StagingEntry> entry = StagingEntry::make(state.layout());
    REQUIRE(entry.has_value());
    broken += exists(entry->path()) ? 0 : 1;
  }
  done = true;
  CHECK(broken == 0);
}

TEST_CASE("a sweep makes no directories") {
  const StateDirectory state;
  sweepStaging(state.layout());
  CHECK(StateDirectory::listed(state.base.path()).empty());
}
