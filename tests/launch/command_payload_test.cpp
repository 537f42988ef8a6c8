#include "backend/launch/command_payload.h"

#include <catch2/catch.hpp>
#include <cstring>

using namespace stitchkit;

TEST_CASE("the environment has its order, and a value declared twice counts last", "[payload]") {
  Command command;
  command.workingDirectory = "/workspace/d";
  command.environment = {{"X", "1"}, {"PATH", "/p"}, {"X", "2"}};
  CHECK(guestEnvironment(command) == std::vector<std::string>{"PATH=/p", "HOME=/workspace", "X=2", "PWD=/workspace/d"});
}

TEST_CASE("the payload is a header and strings", "[payload]") {
  Command command;
  command.executable = "prog";
  command.arguments = {"", "b"};
  command.workingDirectory = "/workspace";
  command.maxOpenFiles = 9;
  const std::string payload = commandPayload(command, 256);
  LaunchRunHeader header{};
  std::memcpy(&header, payload.data(), sizeof header);
  CHECK(header.argumentCount == 3);
  CHECK(header.environmentCount == 3);
  CHECK(header.fileBytes == LAUNCH_KEEP_LIMIT);
  CHECK(header.openFiles == 9);
  CHECK(header.softOpenFiles == 256);
  const char strings[] = "/workspace\0prog\0prog\0\0b\0PATH=/usr/bin:/bin\0HOME=/workspace\0PWD=/workspace";
  CHECK(payload.substr(sizeof header) == std::string(strings, sizeof strings));
}

TEST_CASE("what is not asked of the helper it leaves alone", "[payload]") {
  LaunchRunHeader header{};
  const std::string payload = commandPayload({}, 0);
  std::memcpy(&header, payload.data(), sizeof header);
  CHECK(header.softOpenFiles == LAUNCH_KEEP_LIMIT);
  CHECK(header.openFiles == LAUNCH_KEEP_LIMIT);
}
