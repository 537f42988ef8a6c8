// What is no file at all: tools refuse it at once, whatever it is and whatever waits behind it.
#include "tests/attacks/attempts.h"
#include "tests/attacks/canary.h"
#include "tests/attacks/tool_client.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>

namespace stitchkit::testing {
namespace {

constexpr Milliseconds kAtOnce(15000);

/// A plain reader of a file, as a process of its own.
pid_t startReading(const std::string& path) {
  const UniqueFd nowhere(::open("/dev/null", O_RDWR | O_CLOEXEC));
  SpawnOptions reader;
  reader.argv = {"/bin/cat", path};
  reader.descriptors = {{nowhere.get(), 0}, {nowhere.get(), 1}, {nowhere.get(), 2}};
  return spawnProgram(reader);
}

/// Through a descriptor of the folder, since a socket's path has to be short.
bool makeSocket(const std::string& folder, const std::string& name) {
  const UniqueFd directory(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const UniqueFd end(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = "/proc/self/fd/" + std::to_string(directory.get()) + "/" + name;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  return ::bind(end.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

/// A device that a plain read never comes to the end of. Only root can make one, and not on every machine.
bool makeDevice(const std::string& path) {
  return ::mknod(path.c_str(), S_IFCHR | 0666, makedev(1, 5)) == 0 && ::chmod(path.c_str(), 0666) == 0;
}

struct Planted {
  explicit Planted(const Footing& footing) : sidecar(optionsFor(footing)), session(sidecar) {
    const std::string workspace = session.hostWorkspace();
    REQUIRE(session
                .sh("mkfifo fifo && ln -s /proc/self/fd fds && ln -s /proc/self/fd/0 fd && ln -s /proc/1/root one && "
                    "ln -s /proc/self/root own && ln -s /proc/self/cwd cwd && ln -s /dev/zero endless && "
                    "ln -s fifo tofifo && ln -s loop loop && mkdir dir && echo needle > dir/file && "
                    "mkfifo dir/fifo")
                .exitCode == 0);
    REQUIRE(makeSocket(workspace, "socket"));
    special = {"fifo", "socket", "dir/fifo"};
    if (::geteuid() == 0 && makeDevice(workspace + "/device")) {
      special.emplace_back("device");
    }
  }

  Sidecar sidecar;
  Session session;
  std::vector<std::string> special;
  const std::vector<std::string> links{"fds", "fd", "one", "own", "cwd", "endless", "tofifo", "loop"};
};

std::vector<ToolCall> readsOf(const std::string& path) {
  return {{"read_file", {{"path", path}}},
          {"edit_file", {{"path", path}, {"oldText", "a"}, {"newText", "b"}}},
          {"list_directory", {{"path", path}}},
          {"glob", {{"pattern", "**"}, {"path", path}}},
          {"run_command", {{"executable", "cat"}, {"cwd", path}}}};
}

std::vector<ToolCall> writesTo(const std::string& path) {
  return {{"write_file", {{"path", path}, {"content", "x"}}},
          {"write_file", {{"path", path}, {"content", "x"}, {"overwrite", true}}}};
}

TEST_CASE("special files and links into /proc are refused at once by every tool") {
  const Footing footing = GENERATE(from_range(footings()));
  CAPTURE(footing);
  const Canary canary;
  Planted planted(footing);
  ToolClient tools(planted.sidecar, planted.session,
                   {{"executables", {{"cat", "/bin/cat"}}}, {"requiredRestrictions", Json::array()}});
  const auto refused = [&](const ToolCall& call, const std::string& code) {
    const auto start = std::chrono::steady_clock::now();
    const Json answer = tools.answer(call.tool, call.input);
    CAPTURE(call.tool, call.input.dump(), answer.dump());
    CHECK(codeOf(answer) == code);
    CHECK(std::chrono::steady_clock::now() - start < kAtOnce);
    CHECK(answer.dump().find(canary.text()) == std::string::npos);
  };
  for (const std::string& path : planted.special) {
    for (const ToolCall& call : readsOf(path)) {
      refused(call, "BAD_REQUEST");
    }
    for (const ToolCall& call : readsOf(path + "/below")) {
      refused(call, "BAD_REQUEST");
    }
    for (const ToolCall& call : writesTo(path)) {
      refused(call, "CONFLICT");
    }
    for (const ToolCall& call : writesTo(path + "/below")) {
      refused(call, "CONFLICT");
    }
  }
  for (const std::string& path : planted.links) {
    for (const ToolCall& call : readsOf(path)) {
      refused(call, "FORBIDDEN");
    }
    refused(writesTo(path).front(), "CONFLICT");  // something has the name
    refused(writesTo(path).back(), "FORBIDDEN");
    for (const std::string& below : {path + "/0", path + canary.path() + "/file"}) {
      for (const ToolCall& call : readsOf(below)) {
        refused(call, "BAD_REQUEST");
      }
      for (const ToolCall& call : writesTo(below)) {
        refused(call, "CONFLICT");
      }
    }
  }
  CHECK(canary.untouched());
  const auto start = std::chrono::steady_clock::now();
  CHECK(tools.call("search_files", {{"query", "needle"}}).at("matches").size() == 1);
  CHECK(tools.call("search_files", {{"query", "fifo"}, {"mode", "path"}}).at("matches").empty());
  CHECK(tools.call("glob", {{"pattern", "**"}}).at("paths") == Json{"dir/file"});
  for (const Json& entry : tools.call("list_directory", Json::object()).at("entries")) {
    const std::string name = entry.at("name");
    CAPTURE(name);
    const bool isLink = std::find(planted.links.begin(), planted.links.end(), name) != planted.links.end();
    CHECK(entry.at("kind") == (name == "dir" ? "directory" : isLink ? "symlink" : "other"));
  }
  CHECK(std::chrono::steady_clock::now() - start < kAtOnce);
  CHECK(planted.session.sh("[ -p fifo ] && [ -p dir/fifo ] && [ -S socket ] && [ -L fds ]").exitCode == 0);
}

TEST_CASE("a file that a guest holds a lease on keeps no tool waiting") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  SidecarOptions options;
  options.startAs = startAs;
  Sidecar sidecar(std::move(options));
  Session session(sidecar);
  ToolClient tools(sidecar, session);
  const std::string program = session.install("lease_holder");
  session.sh("echo needle > held && echo needle > free");
  Json params = session.commandParams({program, "held"});
  params["stream"] = true;
  sidecar.call("session.spawn", params);
  REQUIRE(sidecar.outputBytes() == "lease=ok\n");
  const auto start = std::chrono::steady_clock::now();
  for (const ToolCall& call : {ToolCall{"read_file", {{"path", "held"}}},
                               ToolCall{"edit_file", {{"path", "held"}, {"oldText", "a"}, {"newText", "b"}}},
                               ToolCall{"write_file", {{"path", "held"}, {"content", "x"}, {"overwrite", true}}}}) {
    const Json answer = tools.answer(call.tool, call.input);
    CAPTURE(call.tool, answer.dump());
    CHECK(answer.contains("error"));
    CHECK(codeOf(answer) != "INTERNAL_SERVER_ERROR");
  }
  const Json found = tools.call("search_files", {{"query", "needle"}});
  CHECK(found.at("matches").size() == 1);
  CHECK(found.at("truncated") == true);
  CHECK(tools.call("list_directory", Json::object()).at("entries").size() == 3);
  CHECK(std::chrono::steady_clock::now() - start < kAtOnce);
  // Control: whoever opens it plainly waits.
  const pid_t waiting = startReading(session.hostWorkspace() + "/held");
  CHECK_FALSE(waitForChild(waiting, Milliseconds(300)));
  session.stop();
  CHECK(waitForChild(waiting, Milliseconds(15000)));  // the lease has gone with its holder
}

TEST_CASE(
    "control: a plain open waits at the FIFO, reads the device for ever, and follows the link to the host's root") {
  const Canary canary;
  Planted planted(footings().front());
  const std::string workspace = planted.session.hostWorkspace();
  const pid_t waiting = startReading(workspace + "/fifo");
  CHECK_FALSE(waitForChild(waiting, Milliseconds(300)));
  // It is the opening that it waits in: there is a reader for whoever writes now.
  UniqueFd writer;
  CHECK(eventually([&] {
    writer.reset(::open((workspace + "/fifo").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    return static_cast<bool>(writer);
  }));
  writer.reset();
  CHECK(waitForChild(waiting, Milliseconds(15000)));
  if (planted.special.back() == "device") {
    const UniqueFd device(::open((workspace + "/device").c_str(), O_RDONLY | O_CLOEXEC));
    std::string bytes(100000, 'x');
    CHECK(::read(device.get(), bytes.data(), bytes.size()) == 100000);
  }
  CHECK(readFile(workspace + "/own" + canary.path() + "/file") == canary.text());
}

}  // namespace
}  // namespace stitchkit::testing
