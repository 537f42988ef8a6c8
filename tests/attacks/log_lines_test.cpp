// What the log tells of commands, refusals and guests' requests; and that no guest forges, floods or blocks it.
#include "tests/attacks/gateway_client.h"
#include "tests/attacks/tool_client.h"

#include <fcntl.h>

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <sstream>

namespace stitchkit::testing {
namespace {

using Clock = std::chrono::steady_clock;

/// The lines of a sidecar that has ended, each as the JSON that it has to be.
std::vector<Json> linesOf(Sidecar& sidecar) {
  sidecar.closeInput();
  const auto end = sidecar.waitForExit();
  REQUIRE(end);
  CHECK(end->code == 0);
  std::vector<Json> lines;
  std::istringstream text(sidecar.stderrText());
  for (std::string line; std::getline(text, line);) {
    CAPTURE(line);
    CHECK(line.size() < 4096);
    lines.push_back(Json::parse(line, nullptr, false));
    REQUIRE(lines.back().is_object());
    CHECK(lines.back().at("time").is_string());
  }
  return lines;
}

std::vector<Json> eventsOf(const std::vector<Json>& lines, const std::string& event) {
  std::vector<Json> found;
  std::copy_if(lines.begin(), lines.end(), std::back_inserter(found),
               [&](const Json& line) { return line.at("event") == event; });
  return found;
}

SidecarOptions inJson(std::vector<std::string> more = {}) {
  SidecarOptions options;
  options.arguments = {"--log-format", "json"};
  options.arguments.insert(options.arguments.end(), more.begin(), more.end());
  return options;
}

TEST_CASE("log: one line a command, whoever asked for it and however it ended") {
  Sidecar sidecar(inJson());
  Session session(sidecar);
  const std::string id = session.state().at("sessionId");
  CHECK(session.sh("exit 3").exitCode == 3);
  sidecar.callError("session.run", session.commandParams({"/bin/sleep", "600"}, {{"timeoutMs", 1}}));
  const Json spawned = sidecar.call("session.spawn", session.commandParams({"/bin/sleep", "600"}));
  sidecar.call("process.stop", spawned);
  ToolClient tools(sidecar, session, {{"executables", {{"echo", "/bin/echo"}}}});
  CHECK(tools.call("run_command", {{"executable", "echo"}, {"args", {"x"}}}).at("outcome") == "exited");
  sidecar.callError("session.run", session.commandParams({"true"}, {{"cwd", "missing"}}));
  sidecar.call("handle.delete", {{"handle", session.handle()}});

  const auto lines = linesOf(sidecar);
  std::vector<Json> commands = eventsOf(lines, "command");
  for (Json& line : commands) {
    CHECK(line.at("handle") == session.handle());
    CHECK(line.at("session") == id);
    CHECK(line.at("durationMs").get<double>() > 0);
    CHECK((line.at("launch") == "warm" || line.at("launch") == "warming" || line.at("launch") == "cold"));
    for (const char* member : {"time", "level", "event", "handle", "session", "durationMs", "launch"}) {
      line.erase(member);
    }
  }
  CHECK(commands == std::vector<Json>{
                        {{"kind", "run"}, {"executable", "/bin/sh"}, {"outcome", "exited"}, {"exitCode", 3}},
                        {{"kind", "run"}, {"executable", "/bin/sleep"}, {"outcome", "deadline"}},
                        {{"kind", "spawn"}, {"executable", "/bin/sleep"}, {"outcome", "stopped"}},
                        {{"kind", "tool"}, {"executable", "/bin/echo"}, {"outcome", "exited"}, {"exitCode", 0}},
                        {{"kind", "run"}, {"executable", "true"}, {"outcome", "failed"}, {"code", "SANDBOX_PATH"}},
                    });
  REQUIRE(eventsOf(lines, "session-created").size() == 1);
  CHECK(eventsOf(lines, "session-created")[0].at("network") == "deny-all");
  REQUIRE(eventsOf(lines, "session-deleted").size() == 1);
  CHECK(eventsOf(lines, "session-deleted")[0].at("commands") == 5);
  CHECK(lines.front().at("event") == "started");
  CHECK(lines.back().at("event") == "ended");
}

TEST_CASE("log: one line a refusal") {
  Sidecar sidecar(inJson({"--max-concurrent-commands", "1"}));
  Session session(sidecar);
  const Json spawned = sidecar.call("session.spawn", session.commandParams({"/bin/sleep", "600"}));
  sidecar.callError("session.run", session.commandParams({"true"}));
  sidecar.callError("session.setNetworkPolicy", {{"handle", session.handle()}, {"network", "allow-all"}});
  sidecar.call("process.stop", spawned);
  ToolClient tools(sidecar, session, {{"deniedPaths", {"secret/**"}}});
  CHECK(codeOf(tools.answer("read_file", {{"path", "secret/x"}})) == "FORBIDDEN");
  const auto refusals = eventsOf(linesOf(sidecar), "refusal");
  REQUIRE(refusals.size() == 3);
  CHECK(refusals[0].at("method") == "session.run");
  CHECK(refusals[0].at("handle") == session.handle());
  CHECK(refusals[0].at("code") == "SANDBOX_BUSY");
  CHECK(refusals[0].at("message") == "Too many commands are live");
  CHECK(refusals[1].at("method") == "session.setNetworkPolicy");
  CHECK(refusals[2].at("method") == "coding.read_file");
  CHECK(refusals[2].at("toolset") == "t1");
  CHECK(refusals[2].at("code") == "FORBIDDEN");
  CHECK_FALSE(refusals[2].contains("message"));
}

TEST_CASE("log: one line a request of a guest, with the origin that the host has named") {
  const Upstream upstream;
  Sidecar sidecar(inJson());
  GatewayGuest guest(sidecar, upstream);
  CHECK(guest.ask("/a-path?a-query") == "200");
  guest.session().run({"/usr/bin/curl", "-s", "--unix-socket", "/run/stitchkit-network.sock", "http://other.example/"});
  const auto requests = eventsOf(linesOf(sidecar), "gateway-request");
  REQUIRE(requests.size() == 2);
  for (const Json& line : requests) {
    CHECK(line.at("handle") == guest.session().handle());
    CHECK(line.at("session") == guest.session().state().at("sessionId"));
    CHECK(line.at("method") == "GET");
    CHECK(line.at("durationMs").is_number());
    CHECK(line.dump().find("a-path") == std::string::npos);
    CHECK(line.dump().find("a-query") == std::string::npos);
  }
  CHECK(requests[0].at("origin") == upstream.origin());
  CHECK(requests[0].at("outcome") == "answered");
  CHECK(requests[0].at("status") == 200);
  CHECK(requests[0].at("responseBytes") == 2);
  CHECK(requests[1].at("host") == "other.example");
  CHECK(requests[1].at("outcome") == "denied");
  CHECK(requests[1].at("status") == 403);
}

// Requests on one connection, each of which is answered before the next is sent.
constexpr const char* kAskAgain =
    "import socket, sys\n"
    "gateway = socket.socket(socket.AF_UNIX)\n"
    "gateway.connect('/run/stitchkit-network.sock')\n"
    "for i in range(int(sys.argv[1])):\n"
    "    gateway.sendall(b'GET / HTTP/1.1\\r\\nHost: x%d.example\\r\\n\\r\\n' % i)\n"
    "    got = b''\n"
    "    while not got.endswith(b'denied'):\n"
    "        got += gateway.recv(4096)\n";

TEST_CASE("log: a guest that is denied again and again makes so many lines and no more, and all are counted") {
  constexpr int kRequests = 3000;
  const Upstream upstream;
  Sidecar sidecar(inJson());
  GatewayGuest guest(sidecar, upstream);
  const auto began = Clock::now();
  const auto asked = guest.session().run({"/usr/bin/python3", "-c", kAskAgain, std::to_string(kRequests)},
                                         {{"timeoutMs", 120000}}, Milliseconds(120000));
  CAPTURE(asked.err);
  REQUIRE(asked.exitCode == 0);
  const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
  const Json stats = sidecar.call("backend.stats");
  CHECK(stats.at("gateway").at("ended").at("denied") == kRequests);
  // The control: what the host allows is told beside the flood.
  CHECK(guest.ask() == "200");
  sidecar.call("handle.stop", {{"handle", guest.session().handle()}});
  const auto lines = linesOf(sidecar);
  const auto requests = eventsOf(lines, "gateway-request");
  const auto denied = static_cast<std::size_t>(
      std::count_if(requests.begin(), requests.end(), [](const Json& line) { return line.at("outcome") == "denied"; }));
  CHECK(denied >= 200);
  CHECK(static_cast<double>(denied) <= 201 + 50 * (seconds + 1));
  CHECK(stats.at("log").at("suppressed") == kRequests - denied);
  CHECK(requests.back().at("outcome") == "answered");
  CHECK(eventsOf(lines, "session-stopped").at(0).at("gatewayRequests") == kRequests + 1);
}

// A host name may hold no control character; other parts of a request are shown to nobody.
constexpr const char* kForge =
    "import socket\n"
    "for head in (b'GET / HTTP/1.1\\r\\nHost: \\x1b[2J\\x07\\xc2\\x9b\\xff\\r\\n\\r\\n',\n"
    "             b'GET / HTTP/1.1\\r\\nHost: a\\\",\\\"level\\\":\\\"error\\\",\\\"x\\\":\\\"\\r\\n\\r\\n',\n"
    "             b'GET / HTTP/1.1\\r\\nHost: a\\nstitchkit-sandbox: error: forged\\r\\n\\r\\n',\n"
    "             b'GET / HTTP/1.1\\r\\nHost: ' + b'h' * 12000 + b'\\r\\n\\r\\n',\n"
    "             b'M' * 4000 + b' / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'):\n"
    "    gateway = socket.socket(socket.AF_UNIX)\n"
    "    gateway.connect('/run/stitchkit-network.sock')\n"
    "    gateway.sendall(head)\n"
    "    print(gateway.recv(12).decode())\n";

TEST_CASE("log: a guest forges no line and drives no terminal") {
  const std::string format = GENERATE("text", "json");
  SidecarOptions options;
  options.arguments = {"--log-format", format};
  const Upstream upstream;
  Sidecar sidecar(std::move(options));
  GatewayGuest guest(sidecar, upstream);
  const auto asked = guest.session().run({"/usr/bin/python3", "-c", kForge});
  CAPTURE(asked.err);
  CHECK(linesThatAre(asked.out, "HTTP/1.1 403") + linesThatAre(asked.out, "HTTP/1.1 400") +
            linesThatAre(asked.out, "HTTP/1.1 431") ==
        5);
  sidecar.call("handle.stop", {{"handle", guest.session().handle()}});
  sidecar.closeInput();
  REQUIRE(sidecar.waitForExit());
  std::istringstream text(sidecar.stderrText());
  int requests = 0;
  for (std::string line; std::getline(text, line);) {
    CAPTURE(line);
    CHECK(line.size() < 4096);
    CHECK(std::none_of(line.begin(), line.end(),
                       [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f' || c == '\x9b'; }));
    if (format == "json") {
      const Json parsed = Json::parse(line);
      CHECK(parsed.at("level") == "info");
    } else {
      CHECK(line.rfind("stitchkit-sandbox: info: ", 0) == 0);
    }
    requests += line.find("gateway-request") != std::string::npos ? 1 : 0;
  }
  CHECK(requests == 5);
}

/// A random text that stands nowhere else.
std::string canary() {
  static int number = 0;
  return "canary-" + std::to_string(::getpid()) + "-" + std::to_string(++number) + "-s3cr3t";
}

TEST_CASE("log: arguments, environment, input, output, files, paths and headers stand in no line") {
  const std::string format = GENERATE("text", "json");
  SidecarOptions options;
  options.arguments = {"--log-level", "debug", "--log-format", format};
  const std::string secret = canary();
  const std::string shown = canary();
  const Upstream upstream(
      [&](const UpstreamRequest&, int connection) { return sendAll(connection, response(secret)); });
  Sidecar sidecar(std::move(options));
  GatewayGuest guest(sidecar, upstream,
                     allowOnly(upstream, {{"headers", {{"X-Key", secret}}}, {"reflection", "allow"}}));
  Session& session = guest.session();
  const Json handle{{"handle", session.handle()}};
  // As arguments, environment, input, output and what a guest sends: with each outcome a command has.
  const Json given{{"environment", {{"SECRET", secret}}}};
  for (const char* script : {"cat; echo $0 $SECRET; echo $SECRET >&2", "exit 3", "sleep 600", "yes $SECRET"}) {
    Json params = session.commandParams({"/bin/sh", "-c", script, secret}, given);
    params["stdin"] = secret;
    params["command"]["timeoutMs"] = 2000;
    params["command"]["maxOutputBytes"] = 1000;
    const auto id = sidecar.request("session.run", params);
    sidecar.response(id, Milliseconds(60000));
  }
  sidecar.response(sidecar.request("session.run", session.commandParams({"true"}, {{"cwd", secret}})));
  session.run({"/usr/bin/curl", "-s", "--unix-socket", "/run/stitchkit-network.sock", "-d", secret, "-H",
               "X-Own: " + secret, upstream.origin() + "/" + secret + "?" + secret});
  // As names and contents of files, for the tools too; as what the host got wrong.
  sidecar.call("session.writeTextFile", {{"handle", session.handle()}, {"path", secret}, {"text", secret}});
  sidecar.callError("session.readTextFile", {{"handle", session.handle()}, {"path", secret + "/" + secret}});
  sidecar.callError("session.readTextFile", {{"handle", secret}, {"path", secret}});
  ToolClient tools(sidecar, session, {{"deniedPaths", {secret}}, {"environment", {{"SECRET", secret}}}});
  tools.answer("read_file", {{"path", secret}});
  tools.answer("search_files", {{"query", secret + "("}, {"regex", true}});
  sidecar.callError(secret);
  sidecar.callError("session.run", {{"handle", session.handle()}, {secret, secret}});
  for (const char* reflection : {"redact", "s3cr3t"}) {
    Json policy = allowOnly(upstream, {{"headers", {{"X-Key", secret + "\n"}}}, {"reflection", reflection}});
    sidecar.callError("session.setNetworkPolicy", {{"handle", session.handle()}, {"network", policy}});
  }
  sidecar.callError("backend.create", {{"template", {{"template", secret}, {"files", {{"../" + secret, secret}}}}},
                                       {"network", "deny-all"}});
  sidecar.sendRaw("{\"jsonrpc\":\"2.0\",\"" + secret + "\n");
  // The control: a program's path is shown, so that the search finds what is there.
  session.run({"/workspace/" + shown});
  sidecar.call("handle.stop", handle);
  sidecar.closeInput();
  REQUIRE(sidecar.waitForExit());
  const std::string log = sidecar.stderrText();
  CAPTURE(log);
  CHECK(log.find(shown) != std::string::npos);
  CHECK(log.find(secret) == std::string::npos);
  for (const char* event : {"command", "refusal", "gateway-request", "session-created", "session-stopped"}) {
    CHECK(log.find(event) != std::string::npos);
  }
}

TEST_CASE("log: a format that there is not is a usage error") {
  SidecarOptions options;
  options.arguments = {"--log-format", "xml"};
  Sidecar sidecar(std::move(options));
  const auto end = sidecar.waitForExit();
  REQUIRE(end);
  CHECK(end->code == 64);
  CHECK(sidecar.stderrText().find("--log-format is one of: json, text") != std::string::npos);
}

TEST_CASE("log: a file that may grow no more loses lines, and nothing else") {
  const ScratchFolder folder;
  const UniqueFd file(::open((folder / "log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  SidecarOptions options;
  options.arguments = {"--log-level", "debug"};
  options.hardLimits = {"--fsize=1000"};
  options.stderrTo = file.get();
  Sidecar sidecar(std::move(options));
  for (int i = 0; i < 50; ++i) {
    CHECK(sidecar.callError("no.such.method").at("code") == -32601);
  }
  CHECK(std::filesystem::file_size(folder / "log") == 1000);
  CHECK(sidecar.call("backend.stats").at("log").at("dropped") > 0);
}

}  // namespace
}  // namespace stitchkit::testing
