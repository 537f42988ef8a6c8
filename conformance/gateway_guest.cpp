#include "conformance/gateway_guest.h"

#include <set>

#include "conformance/bytes.h"
#include "conformance/http_message.h"

namespace conformance {
namespace {

using Problem = std::optional<std::string>;

constexpr int kMostOutput = 64 << 20;

/// Reads the job from stdin, opens the connections, and prints what each got. It imports what is built into the
/// interpreter only: the modules around that take longer to load than most cases to run.
constexpr const char* kProgram = R"(
import _socket, _thread, binascii, fcntl, struct, sys, termios, time
job = eval(sys.stdin.read(), {"true": True, "false": False})
lock = _thread.allocate_lock()
reached = 0

def untaken(peer):
    return struct.unpack("i", fcntl.ioctl(peer.fileno(), termios.TIOCOUTQ, b"\0\0\0\0"))[0]

def await_taken(peer, until):
    while untaken(peer) > 0 and time.monotonic() < until:
        time.sleep(0.0005)

def announce(what):
    global reached
    wanted = job.get("announce")
    if wanted is None or wanted.get("when", "sent") != what:
        return
    with lock:
        reached += 1
        if reached == wanted.get("connections", job["count"]):
            with open("/workspace/" + wanted["fifo"], "w") as fifo:
                fifo.write(what + "\n")

def receive(peer, got, most, until):
    while len(got) < most:
        peer.settimeout(max(0.001, until - time.monotonic()))
        try:
            piece = peer.recv(65536)
        except TimeoutError:
            return "open"
        except OSError:
            return "closed"
        if not piece:
            return "closed"
        if not got:
            announce("answered")
        got += piece
    return "left"

def send(peer, got, until):
    for slice in job["slices"]:
        if slice.get("after") == "answer":
            while b"\r\n\r\n" not in got:
                if receive(peer, got, len(got) + 1, until) != "left":
                    return
        elif slice.get("after") == "taken":
            await_taken(peer, until)
        peer.settimeout(max(0.001, until - time.monotonic()))
        for _ in range(slice.get("times", 1)):
            peer.sendall(binascii.a2b_base64(slice["base64"]))
            if slice.get("every"):
                time.sleep(slice["every"] / 1000)

def converse():
    got = bytearray()
    until = time.monotonic() + job["waitMs"] / 1000
    peer = _socket.socket(_socket.AF_UNIX)
    peer.settimeout(job["waitMs"] / 1000)
    peer.connect(job["socket"])
    try:
        send(peer, got, until)
        if job["announces"]:
            await_taken(peer, until)
        announce("sent")
    except OSError:
        pass
    if job["hold"]:
        time.sleep(3600)
    if job["halfClose"]:
        try:
            peer.shutdown(_socket.SHUT_WR)
        except OSError:
            pass
    end = receive(peer, got, job["close"], until)
    peer.close()
    return '{"received": "%s", "end": "%s"}' % (binascii.b2a_base64(got, newline=False).decode(), end)

def run(number, results, done):
    try:
        results[number] = converse()
    except Exception as error:
        results[number] = '"%s"' % type(error).__name__
    done.release()

results = [""] * job["count"]
ends = [_thread.allocate_lock() for _ in results]
for number, done in enumerate(ends):
    done.acquire()
    _thread.start_new_thread(run, (number, results, done))
for done in ends:
    done.acquire()
print("[" + ", ".join(results) + "]")
)";

Problem makeSlice(const Json& described, bool first, Json& slice) {
  slice = Json::object();
  std::optional<std::string> bytes;
  if (described.is_string()) {
    bytes = described.get<std::string>();
  } else {
    slice = described;
    bytes = described.contains("text") ? std::optional(described["text"].get<std::string>())
                                       : decodeBase64(described.value("base64", ""));
    slice.erase("text");
  }
  if (!bytes) {
    return "the case holds wrong base64";
  }
  if (!first && !slice.contains("after")) {
    slice["after"] = "taken";
  }
  slice["base64"] = encodeBase64(*bytes);
  return std::nullopt;
}

/// The headers that say something; a name that came twice has a list.
Json headersOf(const HttpMessage& message) {
  static const std::set<std::string> framing = {"content-length", "transfer-encoding", "date", "keep-alive"};
  Json headers = Json::object();
  for (const auto& [name, value] : message.fields) {
    if (framing.contains(name)) {
      continue;
    }
    if (!headers.contains(name)) {
      headers[name] = latin1(value);
    } else {
      headers[name] = headers[name].is_array() ? headers[name] : Json::array({headers[name]});
      headers[name].push_back(latin1(value));
    }
  }
  return headers;
}

Json readReplies(std::string_view bytes, bool ended, bool toHead) {
  Json read = {{"replies", Json::array()}, {"rest", ""}};
  while (!bytes.empty()) {
    const HttpParsed parsed = parseReply(bytes, ended, toHead);
    if (parsed.state != HttpParsed::State::kWhole) {
      const std::string why = parsed.problem.empty() ? "a part of a reply" : parsed.problem;
      read["rest"] = why + ": " + latin1(bytes.substr(0, 400));
      break;
    }
    read["replies"].push_back({{"status", parsed.message.status},
                               {"headers", headersOf(parsed.message)},
                               {"body", describeBody(parsed.message.body)}});
    bytes.remove_prefix(parsed.consumed);
  }
  return read;
}

}  // namespace

Problem guestParams(const Json& step, Json& params) {
  const Json& given = step["gateway"];
  Json slices = Json::array();
  for (const auto& described : given.is_array() ? given : Json::array({given})) {
    Json slice;
    if (Problem problem = makeSlice(described, slices.empty(), slice)) {
      return problem;
    }
    slices.push_back(std::move(slice));
  }
  const int waitMs = step.value("waitMs", 10000);
  Json job = {{"slices", slices},
              {"socket", step.value("socket", "/run/stitchkit-network.sock")},
              {"count", step.value("connections", 1)},
              {"halfClose", step.value("halfClose", false)},
              {"hold", step.value("hold", false)},
              {"close", step.value("closeAfter", 1 << 30)},
              {"announces", step.contains("announce")},
              {"waitMs", waitMs}};
  if (step.contains("announce")) {
    job["announce"] = step["announce"];
  }
  params["command"] = {{"executable", "/usr/bin/python3"},
                       {"args", {"-I", "-S", "-c", kProgram}},
                       {"timeoutMs", waitMs + 30000},
                       {"maxOutputBytes", kMostOutput}};
  params["stdin"] = job.dump();
  return std::nullopt;
}

Problem readGuestOutput(const std::string& output, bool toHead, Json& connections) {
  std::string problem;
  const auto printed = parseStrict(output, problem);
  if (!printed) {
    return "the guest printed no JSON: " + problem;
  }
  connections = Json::array();
  for (const auto& one : *printed) {
    const auto bytes = one.is_object() ? decodeBase64(one["received"].get<std::string>()) : std::nullopt;
    if (!bytes) {
      return "a connection of the guest failed: " + one.dump();
    }
    const bool ended = one["end"] == "closed";
    Json read = readReplies(*bytes, ended, toHead);
    read["end"] = one["end"];
    read["text"] = latin1(*bytes);
    connections.push_back(std::move(read));
  }
  return std::nullopt;
}

}  // namespace conformance
