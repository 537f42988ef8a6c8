// Not every family of sockets is a part of the network namespace: by AF_VSOCK a virtual machine speaks to the one that
// runs it; and each is a driver of its own. Sockets are opened here, and never connected.
#include "tests/attacks/attempts.h"
#include "tests/attacks/own_network.h"

#include <catch2/catch.hpp>

namespace stitchkit::testing {
namespace {

std::vector<std::string> families(std::string program) {
  return {std::move(program), "by-socket=family", "by-uring=uring-family", "by-int80=int80-family",
          "by-socketcall=socketcall"};
}

TEST_CASE("there are sockets of the families that programs use, and of no others, under every policy") {
  const Footing footing = GENERATE(from_range(footings()));
  CAPTURE(footing);
  Sidecar sidecar(optionsFor(footing));
  for (const Json& policy :
       {Json("deny-all"), Json("allow-all"), Json{{"allow", {{{"origin", "http://127.0.0.1:9"}}}}}}) {
    Session session(sidecar, policy);
    const auto tries = session.run(families(session.install("ways_out")));
    CAPTURE(policy, tries.out, tries.err);
    REQUIRE(attemptsOf(tries.out).size() == 4);
    CHECK(succeeded(attemptsOf(tries.out)).empty());
  }
}

TEST_CASE("control: with rights in the network there are others") {
  const auto output = withNetworkRights([] { return runProgram(families(hostProgram("ways_out"))).output; });
  CAPTURE(output);
  const auto names = succeeded(attemptsOf(output));
  CHECK(names.count("by-socket") == 1);
  CHECK(names.count("by-uring") == 1);
  // A kernel without the 32-bit interface has neither, and no hole there.
  CHECK(names.count("by-int80") == names.count("by-socketcall"));
}

}  // namespace
}  // namespace stitchkit::testing
