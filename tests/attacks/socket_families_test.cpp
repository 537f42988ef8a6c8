// Not every family of sockets is a part of the network namespace: by AF_VSOCK a virtual machine speaks to the one that
// runs it. Sockets are opened here, and never connected.
#include "tests/attacks/attempts.h"
#include "tests/attacks/own_network.h"

#include <catch2/catch.hpp>

namespace stitchkit::testing {
namespace {

std::vector<std::string> families(std::string program) {
  return {std::move(program), "by-socket=family", "by-uring=uring-family", "by-int80=int80-family",
          "by-socketcall=socketcall"};
}

TEST_CASE("where the network is denied there are sockets of the families that its namespace holds, and of no others") {
  const Footing footing = GENERATE(from_range(footings()));
  const Json policy =
      GENERATE(Json("deny-all"), Json{{"allow", Json::array()}}, Json{{"allow", {{{"origin", "http://127.0.0.1:9"}}}}});
  CAPTURE(footing, policy);
  Sidecar sidecar(optionsFor(footing));
  Session session(sidecar, policy);
  const auto tries = session.run(families(session.install("ways_out")));
  CAPTURE(tries.out, tries.err);
  REQUIRE(attemptsOf(tries.out).size() == 4);
  CHECK(succeeded(attemptsOf(tries.out)).empty());
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
