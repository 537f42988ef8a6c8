// Descriptors, zombies and threads come back to where they were (cases/process.md, 22).
#include <boost/asio/steady_timer.hpp>
#include <catch2/catch.hpp>
#include <vector>

#include "tests/launch/launch_fixture.h"

using namespace stitchkit;
using namespace stitchkit::test;

TEST_CASE("three hundred runs leave nothing open", "[guest][resources]") {
  LaunchFixture fixture;
  REQUIRE(fixture.run(LaunchFixture::command("/usr/bin/true")).has_value());
  const int descriptors = openDescriptors();
  int failures = 0;
  for (int round = 0; round < 300; ++round) {
    const Result<GuestOutcome> outcome =
        fixture.run(LaunchFixture::command(round % 3 == 0 ? "/nope" : "cat"), round % 2 == 0 ? "in" : "");
    failures += outcome.has_value() ? 0 : 1;
  }
  CHECK(failures == 0);
  CHECK(openDescriptors() == descriptors);
  CHECK(zombies() == 0);
  CHECK(liveSandboxes() == 0);
}

TEST_CASE("fifty guests at once do not hold each other's pipes", "[guest][resources]") {
  LaunchFixture fixture;
  const PreparedProfile profile = fixture.prepared();
  std::vector<std::shared_ptr<Guest>> sleepers;
  int ended = 0;
  for (int i = 0; i < 49; ++i) {
    sleepers.push_back(Guest::start(fixture.io, profile, LaunchFixture::command("sleep", {"30"}), {}, {},
                                    [&ended](Result<GuestOutcome> outcome) { ended += outcome ? 1 : 0; }));
  }
  std::string output;
  const auto last =
      Guest::start(fixture.io, profile, LaunchFixture::command("cat"), "alone", {}, [&](Result<GuestOutcome> outcome) {
        output = outcome.value().standardOutput;
        CHECK(ended == 0);
        for (const auto& sleeper : sleepers) {
          sleeper->kill(EndCause::kStopped);
        }
      });
  fixture.io.run();
  CHECK(output == "alone");
  CHECK(ended == 49);
  CHECK(liveSandboxes() == 0);
}
