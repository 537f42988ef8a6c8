// An injected credential: the upstream gets it, and nothing else ever shows it, in whatever form.
#include "rpc/base/base64.h"
#include "tests/attacks/gateway_client.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <random>

namespace stitchkit::testing {
namespace {

namespace fs = std::filesystem;

std::string lowerCase(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::string hexOf(std::string_view text, const char* before = "") {
  std::string hex;
  for (const char c : text) {
    char digits[4];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(c));
    hex += std::string(before) + digits;
  }
  return hex;
}

std::string percentEncoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    encoded +=
        std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("-._~").find(c) != std::string_view::npos
            ? std::string(1, c)
            : hexOf(std::string_view(&c, 1), "%");
  }
  return encoded;
}

std::string urlAlphabet(std::string base64) {
  std::replace(base64.begin(), base64.end(), '+', '-');
  std::replace(base64.begin(), base64.end(), '/', '_');
  return base64;
}

/// A random value, and the search for it.
class Secret {
 public:
  Secret() {
    // Its ends are as telling as its middle; some characters are encoded in URLs and in JSON.
    std::random_device random;
    static constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    for (int i = 0; i < 64; ++i) {
      value_ += i % 16 == 9 ? "+/=&"[i / 16] : kLetters[random() % kLetters.size()];
    }
    for (const std::size_t shift : {0UL, 1UL, 2UL}) {
      // What does not depend on its neighbours.
      const std::string inside = encodeBase64(std::string(shift, 'x') + value_);
      const std::string stable = inside.substr(shift == 0 ? 0 : 4, inside.size() - 8);
      exact_.push_back(stable);
      exact_.push_back(urlAlphabet(stable));
    }
    exact_.push_back(value_);
    anyCase_ = {hexOf(value_), hexOf(value_, "%"), lowerCase(percentEncoded(value_)), hexOf(value_, "\\x"),
                lowerCase(value_)};
  }

  [[nodiscard]] const std::string& value() const { return value_; }
  /// How it reads to somebody who knows how to look: each as it would stand somewhere.
  [[nodiscard]] std::vector<std::string> forms() const {
    return {value_,
            encodeBase64(value_),
            encodeBase64("user:" + value_),
            encodeBase64("ab" + value_ + "c"),
            urlAlphabet(encodeBase64(value_)),
            hexOf(value_),
            hexOf(value_, "%"),
            percentEncoded(value_)};
  }
  [[nodiscard]] bool in(const std::string& text) const {
    const auto holds = [](const std::string& all) {
      return [&all](const std::string& form) { return all.find(form) != std::string::npos; };
    };
    const std::string low = lowerCase(text);
    return std::any_of(exact_.begin(), exact_.end(), holds(text)) ||
           std::any_of(anyCase_.begin(), anyCase_.end(), holds(low));
  }

 private:
  std::string value_;
  std::vector<std::string> exact_;
  std::vector<std::string> anyCase_;
};

std::string allFilesBelow(const std::string& folder) {
  std::string all;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    all += entry.path().string() + "\n";
    if (entry.is_regular_file() && !entry.is_symlink()) {
      all += readFile(entry.path()) + "\n";
    } else if (entry.is_symlink()) {
      all += fs::read_symlink(entry.path()).string() + "\n";
    }
  }
  return all;
}

// Whatever a guest can read that is not of the machine's own: its processes, its mounts, its folders.
constexpr const char* kLook =
    "env; cat /proc/self/mountinfo /proc/net/unix /proc/self/maps; "
    "for f in /proc/[0-9]*; do ls -l $f/fd; for n in environ cmdline maps stat status mountinfo; do "
    "tr '\\0' '\\n' < $f/$n; done; done; "
    "for d in /run /tmp /workspace /etc /dev/shm; do find $d -xdev -type f ! -path '*/ssl/*' ! -name gateway_peer "
    "-size -200k -exec cat {} +; find $d -xdev; done; true";

/// Sends back what it got, in many ways.
bool echo(const UpstreamRequest& request, int connection) {
  std::string received;
  for (const auto& [name, value] : request.headers) {
    received += name + ": " + value + "\n";
  }
  const std::string key = request.header("x-key");
  if (request.target == "/body") {
    return sendAll(connection, response(received));
  }
  if (request.target == "/header") {
    return sendAll(connection,
                   response("ok", "X-Echo: " + key + "\r\nContent-Type: text/" + key + "\r\nSet-Cookie: k=" + key +
                                      "\r\nX-" + key.substr(0, 9) + ": 1\r\n"));
  }
  if (request.target.rfind("/form/", 0) == 0) {
    const std::vector<std::string> forms{encodeBase64(key),
                                         encodeBase64("a" + key + "bc"),
                                         encodeBase64("ab" + key + "c"),
                                         urlAlphabet(encodeBase64(key)),
                                         percentEncoded(key),
                                         hexOf(key, "%"),
                                         encodeBase64(received)};
    return sendAll(connection, response("<" + forms.at(std::stoul(request.target.substr(6))) + ">"));
  }
  if (request.target == "/chunks") {
    std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (const char c : received) {
      chunked += std::string("1\r\n") + c + "\r\n";
    }
    return sendAll(connection, chunked + "0\r\nX-Trailer: " + key + "\r\n\r\n");
  }
  if (request.target == "/redirect") {
    return sendAll(connection,
                   response(key, "Location: http://" + request.header("host") + "/?k=" + key + "\r\n", "302 Found"));
  }
  if (request.target == "/reason") {
    return sendAll(connection, response("ok", "", "200 " + key));
  }
  if (request.target == "/error") {
    return sendAll(connection, response(received, "", "500 " + key));
  }
  if (request.target == "/malformed") {
    return sendAll(connection, "HTTP/1.1 " + key + "\r\n" + key + "\r\n\r\n"), false;
  }
  if (request.target == "/cut") {
    return sendAll(connection, "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + received), false;
  }
  return sendAll(connection, response("ok"));
}

const std::vector<std::string> kEchoes{"/body",   "/header",    "/form/0", "/form/1", "/form/2",   "/form/3",
                                       "/form/4", "/form/5",    "/form/6", "/chunks", "/redirect", "/reason",
                                       "/error",  "/malformed", "/cut",    "/"};

Json injecting(const Upstream& upstream, const Secret& secret, const std::string& reflection) {
  return allowOnly(
      upstream,
      {{"headers", {{"X-Key", secret.value()}, {"Authorization", "Basic " + encodeBase64("user:" + secret.value())}}},
       {"responseHeaders", {"x-echo", "set-cookie"}},
       {"reflection", reflection}});
}

std::string askAll(GatewayGuest& guest, const Upstream& upstream) {
  std::string all;
  for (const std::string& path : kEchoes) {
    const auto answer = guest.session().run({"/usr/bin/curl", "-sv", "--max-time", "20", "--unix-socket",
                                             "/run/stitchkit-network.sock", upstream.origin() + path});
    all += answer.out + answer.err;
  }
  return all;
}

// Policies that are refused: with the secret in what is wrong, beside it, and where no policy is.
void giveFaultyPolicies(Sidecar& sidecar, const std::string& handle, const Upstream& upstream, const Secret& secret) {
  const std::string& value = secret.value();
  const Json good = injecting(upstream, secret, "redact");
  std::vector<Json> faulty;
  for (const std::string& header : {value + "\r\nX: y", value + " ", " " + value, value + "\n", value + "\u0416"}) {
    Json policy = good;
    policy["allow"][0]["headers"] = {{"X-Key", header}};
    faulty.push_back(policy);
  }
  for (const char* name : {"Host", "Connection", "bad name", "", "Content-Length"}) {
    Json policy = good;
    policy["allow"][0]["headers"][name] = value;
    faulty.push_back(policy);
  }
  Json twice = good;
  twice["allow"][0]["headers"]["x_key"] = value;
  faulty.push_back(twice);
  Json origin = good;
  origin["allow"][0]["origin"] = "http://127.1/";
  faulty.push_back(origin);
  Json same = good;
  same["allow"].push_back(same["allow"][0]);
  faulty.push_back(same);
  Json number = good;
  number["allow"][0]["headers"]["X-Key"] = {value};
  faulty.push_back(number);
  Json unknown = good;
  unknown["allow"][0]["more"] = value;
  faulty.push_back(unknown);
  Json reflection = good;
  reflection["allow"][0]["reflection"] = value;
  faulty.push_back(reflection);
  faulty.push_back(value);
  for (const Json& policy : faulty) {
    CAPTURE(policy.dump());
    const Json error = sidecar.callError("session.setNetworkPolicy", {{"handle", handle}, {"network", policy}});
    CHECK(error.at("data").at("code") == "VALIDATION_ERROR");
    sidecar.callError("backend.create", {{"template", {{"template", "empty"}}}, {"network", policy}});
  }
  // Lines that are no request at all; the answers have no id and stay in the transcript.
  sidecar.sendRaw("{\"jsonrpc\":\"2.0\",\"method\":\"session.setNetworkPolicy\",\"params\":{\"k\":\"" + value + "\"\n");
  sidecar.sendRaw("{\"jsonrpc\":\"2.0\",\"id\":[\"" + value + "\"],\"method\":\"" + value + "\"}\n");
  sidecar.callError("session.setNetworkPolicy", {{"handle", "h99"}, {"network", good}});
}

TEST_CASE("an injected credential reaches the upstream, and nothing that a guest, the disk, a log or an error shows") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  const std::string reflection = GENERATE("redact", "refuse");
  CAPTURE(startAs, reflection);
  const Secret secret;
  const Upstream upstream{echo};
  SidecarOptions options;
  options.startAs = startAs;
  options.arguments = {"--log-level", "debug", "--log-format", reflection == "redact" ? "text" : "json"};
  options.keepTranscript = true;
  Sidecar sidecar(std::move(options));
  GatewayGuest guest(sidecar, upstream, injecting(upstream, secret, reflection));

  const std::string answers = askAll(guest, upstream);
  CAPTURE(answers);
  CHECK_FALSE(secret.in(answers));
  CHECK(answers.find("200 OK") != std::string::npos);
  const auto looked = guest.session().run({"/bin/sh", "-c", kLook}, {{"maxOutputBytes", 16777216}});
  CHECK(looked.out.find("STITCHKIT_GATEWAY=") != std::string::npos);
  CHECK_FALSE(secret.in(looked.out + looked.err));
  giveFaultyPolicies(sidecar, guest.session().handle(), upstream, secret);
  CHECK(guest.ask() == "200");

  const std::string process = "/proc/" + std::to_string(sidecar.pid());
  CHECK_FALSE(secret.in(readFile(process + "/cmdline") + readFile(process + "/environ")));
  CHECK_FALSE(secret.in(allFilesBelow(sidecar.state()->path())));
  guest.session().stop();
  CHECK_FALSE(secret.in(allFilesBelow(sidecar.state()->path())));
  sidecar.closeInput();
  REQUIRE(sidecar.waitForExit()->code == 0);
  CHECK_FALSE(secret.in(sidecar.transcript()));
  CHECK_FALSE(secret.in(sidecar.stderrText()));
  CHECK(sidecar.transcript().find("gateway.error") != std::string::npos);
  CHECK(sidecar.stderrText().find("gateway-request") != std::string::npos);

  // It was there to be found.
  const auto requests = upstream.requests();
  REQUIRE(requests.size() >= kEchoes.size());
  for (const UpstreamRequest& request : requests) {
    CHECK(request.header("x-key") == secret.value());
    CHECK(request.header("authorization") == "Basic " + encodeBase64("user:" + secret.value()));
  }
}

TEST_CASE("control: under `allow` the guest sees it, and the search finds it in each form wherever it is planted") {
  const Secret secret;
  const Upstream upstream{echo};
  Sidecar sidecar;
  GatewayGuest guest(sidecar, upstream, injecting(upstream, secret, "allow"));
  CHECK(secret.in(askAll(guest, upstream)));
  for (const std::string& form : secret.forms()) {
    CAPTURE(form);
    CHECK(secret.in("before" + form + "after"));
    CHECK(
        secret.in(guest.session().sh(kLook, {{"environment", {{"PLANTED", form}}}, {"maxOutputBytes", 16777216}}).out));
  }
  guest.session().sh("printf %s " + hexOf(secret.value()) + " > /workspace/planted");
  CHECK(secret.in(allFilesBelow(sidecar.state()->path())));
}

}  // namespace
}  // namespace stitchkit::testing
