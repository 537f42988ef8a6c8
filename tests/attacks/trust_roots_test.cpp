// Under allow-all TLS is verified with the host's roots. No network is touched: they are only loaded and counted.
#include "tests/attacks/attempts.h"

#include <unistd.h>

#include <catch2/catch.hpp>

#include <filesystem>

namespace stitchkit::testing {
namespace {

constexpr const char* kPython = "/usr/bin/python3";
// Certificates of the bundle, and whether a context that verifies is made of it.
constexpr const char* kCount =
    "import ssl; c = ssl.create_default_context(); p = ssl.get_default_verify_paths();"
    "c.load_verify_locations('/etc/ssl/certs/ca-certificates.crt');"
    "print(c.cert_store_stats()['x509_ca'], c.verify_mode == ssl.CERT_REQUIRED, c.check_hostname)";
// OpenSSL finds roots by the hash of their subject, one file each.
constexpr const char* kHashed =
    "import os; d = '/etc/ssl/certs'; print(sum(1 for n in os.listdir(d) if n.endswith('.0') and "
    "os.path.getsize(os.path.join(d, n)) > 0))";

TEST_CASE("a guest under allow-all has the host's certificate roots") {
  REQUIRE(std::filesystem::exists(kPython));
  const Footing footing = GENERATE(from_range(footings()));
  CAPTURE(footing);
  Sidecar sidecar(optionsFor(footing));
  Session session(sidecar, "allow-all");
  const auto host = runProgram({kPython, "-c", kCount}, ordinaryUser());
  REQUIRE(host.status.code == 0);
  REQUIRE(std::stoi(host.output) > 50);
  const auto guest = session.run({kPython, "-c", kCount});
  CAPTURE(guest.err);
  CHECK(guest.out == host.output);
  CHECK(session.run({kPython, "-c", kHashed}).out == runProgram({kPython, "-c", kHashed}, ordinaryUser()).output);
}

TEST_CASE("everyday programs work in a guest") {
  const Footing footing = GENERATE(from_range(footings()));
  CAPTURE(footing);
  Sidecar sidecar(optionsFor(footing));
  Session session(sidecar);
  CHECK(session.sh("echo a b | awk '{print $2}'").out == "b\n");
  CHECK(session.run({"/usr/bin/whoami"}).out == "agent\n");
  CHECK(session.run({kPython, "-c", "import ssl"}).exitCode == 0);
  CHECK(session.sh("getent hosts localhost").out.find("localhost") != std::string::npos);
  const auto git = session.sh("git init -q r && cd r && git commit -q --allow-empty -m first && git log --format=%an");
  CAPTURE(git.err);
  CHECK(git.exitCode == 0);
}

}  // namespace
}  // namespace stitchkit::testing
