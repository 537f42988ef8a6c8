#include "tests/soak/rig.h"

#include <signal.h>

#include <algorithm>
#include <iostream>
#include <stdexcept>

#include "tests/soak/operations.h"
#include "tests/support/processes.h"

namespace stitchkit::soak {
namespace {

constexpr std::size_t kKeptFailures = 10;
constexpr testing::Milliseconds kPatience(60000);

bool serveUpstream(const testing::UpstreamRequest& request, int connection) {
  if (request.target == "/slow") {
    testing::waitForClose(connection);
    return false;
  }
  if (request.target == "/cut") {
    testing::sendAll(connection, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort");
    return false;
  }
  const std::string header = request.header("authorization");
  if (header != Soak::kSecret) {
    return testing::sendAll(connection, testing::response("no header", "", "401 Unauthorized"));
  }
  return testing::sendAll(connection, testing::response(request.target == "/echo" ? header : "ok"));
}

}  // namespace

Soak::Soak(std::uint64_t chosenSeed)
    : state(std::make_shared<testing::StateDirectory>(testing::startModes().front())),
      seed(chosenSeed),
      upstream(serveUpstream) {}

void Soak::failed(const std::string& what) {
  const std::lock_guard lock(mutex_);
  if (++failureCount_ <= kKeptFailures) {
    failures_.push_back(what);
    std::cout << "FAILED: " << what << std::endl;
  }
}

std::vector<std::string> Soak::failures() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> all = failures_;
  if (failureCount_ > all.size()) {
    all.push_back("and " + std::to_string(failureCount_ - all.size()) + " more");
  }
  return all;
}

void Soak::did(std::string_view what) const {
  ++total_;
  const std::lock_guard lock(mutex_);
  const auto found = counts_.find(what);
  if (found != counts_.end()) {
    ++found->second;
  } else {
    counts_.emplace(what, 1);
  }
}

std::string Soak::counts() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const auto& [what, count] : counts_) {
    text += (text.empty() ? "" : ", ") + what + " " + std::to_string(count);
  }
  return text;
}

void Soak::reapOrphans() const {
  std::vector<pid_t> known;
  {
    const std::lock_guard lock(mutex_);
    known = sidecars_;
  }
  testing::reapOrphans(known);
}

void Soak::started(pid_t sidecar) const {
  const std::lock_guard lock(mutex_);
  sidecars_.push_back(sidecar);
}

void wrong(const std::string& what, const Json& answer) {
  throw std::runtime_error(what + ": " + answer.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 300));
}

const Json& resultOf(const Json& answer) {
  if (!answer.contains("result")) {
    wrong("no result", answer);
  }
  return answer.at("result");
}

void requireError(const Json& answer, std::string_view code, std::string_view reason) {
  if (answer.value("/error/data/code"_json_pointer, "") != code ||
      (!reason.empty() && answer.value("/error/data/reason"_json_pointer, "") != reason)) {
    wrong("not " + std::string(code) + " " + std::string(reason), answer);
  }
}

Rig::Rig(const Soak& soak, std::uint64_t seed, Options options)
    : soak_(soak), dice_(seed), options_(std::move(options)), marker_("3600.0" + testing::uniqueDigits()) {
  start();
}

void Rig::start() {
  testing::SidecarOptions options;
  options.startAs = options_.startAs;
  options.arguments = options_.arguments;
  options.arguments.insert(options.arguments.end(), {"--private-origins", "--log-level", "error"});
  options.state = soak_.state;
  sidecar_ = std::make_unique<testing::Sidecar>(std::move(options));
  soak_.started(sidecar_->pid());
}

void Rig::begin(std::string what, std::string_view method, Json params, std::function<void(const Json&)> check) {
  pending_.push_back({std::move(what), sidecar_->request(method, std::move(params)), std::move(check), nullptr});
}

void Rig::beginCommand(Room& room, std::string what, std::string_view method, Json params,
                       std::function<void(const Json&)> check) {
  ++room.commands;
  begin(std::move(what), method, std::move(params), std::move(check));
  pending_.back().room = &room;
}

void Rig::collect() {
  for (const Pending& one : std::exchange(pending_, {})) {
    const Json answer = sidecar_->response(one.id, kPatience);
    try {
      one.check(answer);
    } catch (const std::exception& fault) {
      throw std::runtime_error(one.what + ": " + fault.what());
    }
    soak_.did(one.what);
    if (one.room != nullptr) {
      --one.room->commands;
    }
  }
  for (Room& room : rooms_) {
    room.claimed.clear();
  }
}

void Rig::open() {
  rooms_.reserve(options_.rooms + 1);  // requests under way hold references
  while (rooms_.size() < options_.rooms) {
    rooms_.push_back(openRoom());
  }
}

Room Rig::openRoom() {
  Room room;
  room.session = std::make_unique<testing::Session>(*sidecar_);
  openTools(room);
  room.gatewayClient = room.session->install("gateway_peer");
  changePolicy(*this, room);
  soak_.did("create");
  return room;
}

void Rig::openTools(Room& room) const {
  room.toolset = sidecar_
                     ->call("coding.create", {{"handle", room.handle()},
                                              {"authorize", "allow"},
                                              {"executables", {{"sh", "/bin/sh"}, {"seq", "/usr/bin/seq"}}},
                                              {"limits", {{"maxShellOutputBytes", 4096}}}})
                     .at("toolset");
}

void Rig::deleteRoom(Room& room) {
  sidecar_->call("handle.delete", {{"handle", room.handle()}}, kPatience);
  soak_.did("delete");
}

void Rig::round() {
  const std::size_t count = 4 + dice_.below(12);
  for (std::size_t i = 0; i < count; ++i) {
    beginAny(*this, dice_.oneOf(rooms_));
  }
  if (dice_.oneIn(2)) {
    doMeanwhile(*this, dice_.oneOf(rooms_));
  }
  collect();
  if (dice_.oneIn(3)) {
    doAlone(*this, dice_.oneOf(rooms_));
  }
}

void Rig::verify(Room& room) {
  for (const auto& [path, content] : room.files) {
    begin("verify", "session.readTextFile", {{"handle", room.handle()}, {"path", path}},
          [path = path, content = content](const Json& answer) {
            if (resultOf(answer).at("text") != content) {
              wrong("not what was written to " + path, answer);
            }
          });
  }
  collect();
}

void Rig::close(std::size_t first) {
  while (rooms_.size() > first) {
    deleteRoom(rooms_.back());
    rooms_.pop_back();
  }
}

void Rig::rest() {
  for (Room& room : rooms_) {
    const auto change = [&](const Json& policy) {
      sidecar_->call("session.setNetworkPolicy", {{"handle", room.handle()}, {"network", policy}}, kPatience);
    };
    change(room.policy == "deny-all" ? "allow-all" : "deny-all");  // to the policy that holds it is no change
    change(room.policy);
  }
  const auto quiet = [&] {
    return testing::commandsOf(sidecar_->pid()).empty() &&
           testing::waitingLaunchesOf(sidecar_->pid()).size() == rooms_.size();
  };
  if (!testing::eventually(quiet, kPatience)) {
    throw std::runtime_error("at rest: " + std::to_string(testing::commandsOf(sidecar_->pid()).size()) +
                             " processes of commands, " +
                             std::to_string(testing::waitingLaunchesOf(sidecar_->pid()).size()) +
                             " launches wait for " + std::to_string(rooms_.size()) + " rooms");
  }
}

void Rig::restart() {
  pending_.clear();
  rooms_.clear();
  sidecar_->kill(SIGKILL);
  sidecar_->waitForExit();
  start();
  open();
}

void Rig::end() {
  sidecar_->closeInput();
  const auto ended = sidecar_->waitForExit(kPatience);
  if (!ended || ended->code != 0) {
    throw std::runtime_error("the sidecar did not end well: " + (ended ? std::to_string(ended->code) : "not at all"));
  }
}

namespace {

/// What a file holds after its sidecar was killed: one of the contents that it may hold, whole.
bool isPossible(const std::vector<Content>& contents, const Json& answer) {
  if (!answer.contains("result")) {
    requireError(answer, "SANDBOX_PATH");
    return std::count(contents.begin(), contents.end(), std::nullopt) != 0;
  }
  const std::string text = answer.at("result").at("text");
  return std::count(contents.begin(), contents.end(), Content(text)) != 0;
}

}  // namespace

void Rig::killed() {
  const std::size_t count = 4 + dice_.below(12);
  for (std::size_t i = 0; i < count; ++i) {
    beginAny(*this, dice_.oneOf(rooms_));
  }
  Room& busy = dice_.oneOf(rooms_);
  sidecar_->call("session.spawn", busy.session->commandParams({"/bin/sleep", marker_}, {{"timeoutMs", 600000}}));
  // Somewhere in the middle of them.
  for (std::size_t answered = dice_.below(count); answered > 0; --answered) {
    sidecar_->response(pending_[answered - 1].id, kPatience);
  }
  const int signal = dice_.oneIn(4) ? SIGTERM : SIGKILL;
  sidecar_->kill(signal);
  if (!sidecar_->waitForExit(kPatience)) {
    throw std::runtime_error("still there after signal " + std::to_string(signal));
  }
  pending_.clear();
  if (!testing::noGuestSoon(marker_)) {
    throw std::runtime_error("a guest has outlived its sidecar");
  }
  soak_.did(signal == SIGKILL ? "SIGKILL of the sidecar" : "SIGTERM of the sidecar");
  const std::vector<testing::StartAs> modes = testing::startModes();
  options_.startAs = dice_.oneOf(modes);
  start();
  for (Room& room : rooms_) {
    room.session = std::make_unique<testing::Session>(*sidecar_, room.policy, room.session->state());
    openTools(room);
    room.commands = 0;
    settleClaims(room);
  }
  for (Room& room : rooms_) {
    verify(room);
  }
}

void Rig::settleClaims(Room& room) {
  for (const auto& [path, contents] : std::exchange(room.claimed, {})) {
    const Json answer = sidecar_->response(
        sidecar_->request("session.readTextFile", {{"handle", room.handle()}, {"path", path}}), kPatience);
    if (!isPossible(contents, answer)) {
      wrong("after a kill, neither the old nor the new content of " + path, answer);
    }
    room.files.erase(path);
    if (answer.contains("result")) {
      room.files[path] = answer.at("result").at("text");
    }
  }
}

}  // namespace stitchkit::soak
