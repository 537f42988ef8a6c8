// The launcher for Boost.Process: what its child gets, and what failure leaves.
#include <fcntl.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include "backend/launch/descriptors.h"
#include "backend/launch/guest_launcher.h"
#include "tests/launch/launch_fixture.h"

using namespace stitchkit;
using namespace stitchkit::test;

TEST_CASE("the child has the named descriptors, no environment, a session of its own", "[launcher]") {
  boost::asio::io_context io;
  const UniqueFd leak(::open("/dev/null", O_RDONLY));
  Result<Pipe> pipe = makePipe();
  Result<UniqueFd> null = openNull();
  // Sources that are one another's targets.
  const GuestLauncher launcher{"name", {null->get(), pipe->writeEnd.get(), pipe->writeEnd.get(), 0}};
  boost::system::error_code error;
  auto process = launcher(io.get_executor(), error, "/bin/sh",
                          {"-c",
                           "echo $0; /usr/bin/ls /proc/$$/fd; /usr/bin/tr '\\0' '\\n' < /proc/$$/environ; "
                           "/usr/bin/cut -d' ' -f6 /proc/$$/stat | /usr/bin/grep -qx $$ && echo leader"});
  REQUIRE(!error);
  int status = -1;
  auto handle = process.detach();
  handle.async_wait([&](boost::system::error_code, int exitStatus) { status = exitStatus; });
  io.run();
  CHECK(status == 0);
  char text[256] = {};
  CHECK(::read(pipe->readEnd.get(), text, sizeof text - 1) > 0);
  CHECK(std::string(text) == "name\n0\n1\n2\n3\nleader\n");
}

TEST_CASE("a program that cannot be started leaves nothing", "[launcher]") {
  boost::asio::io_context io;
  boost::system::error_code error;
  const GuestLauncher launcher{"name", {}};
  launcher(io.get_executor(), error, "/nonexistent", {});  // makes the loop's own descriptors
  CHECK(error.value() == ENOENT);
  const int descriptors = openDescriptors();
  launcher(io.get_executor(), error, "/nonexistent", {});
  CHECK(zombies() == 0);
  CHECK(openDescriptors() == descriptors);
}
