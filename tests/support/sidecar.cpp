#include "tests/support/sidecar.h"

#include "rpc/base/base64.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <system_error>

namespace stitchkit::testing {
namespace {

using Clock = std::chrono::steady_clock;

void must(bool done, const char* what) {
  if (!done) {
    throw std::system_error(errno, std::generic_category(), what);
  }
}

void setNonBlocking(int descriptor) {
  must(::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK) == 0, "O_NONBLOCK");
}

std::pair<UniqueFd, UniqueFd> makePipe() {
  int ends[2] = {-1, -1};
  must(::pipe2(ends, O_CLOEXEC) == 0, "pipe2");
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// No echo, no line editing, no signals: bytes pass as they are.
std::pair<UniqueFd, UniqueFd> makeTerminal(std::string& name) {
  int master = -1;
  int slave = -1;
  std::array<char, 64> path{};
  termios raw{};
  ::cfmakeraw(&raw);
  must(::openpty(&master, &slave, path.data(), &raw, nullptr) == 0, "openpty");
  ::fcntl(master, F_SETFD, FD_CLOEXEC);
  ::fcntl(slave, F_SETFD, FD_CLOEXEC);
  name = path.data();
  return {UniqueFd(master), UniqueFd(slave)};
}

std::vector<std::string> childEnvironment(const SidecarOptions& options) {
  std::vector<std::string> environment{"PATH=/usr/bin:/bin"};
  for (const char* name : {"ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS"}) {
    if (const char* value = std::getenv(name)) {
      environment.push_back(std::string(name) + "=" + value);
    }
  }
  environment.insert(environment.end(), options.environment.begin(), options.environment.end());
  return environment;
}

// What the run adds for all its sidecars: an option and its value, of which a test's own are the stronger.
std::vector<std::string> argumentsOf(const SidecarOptions& options) {
  std::vector<std::string> arguments = options.arguments;
  const char* const added = std::getenv("STITCHKIT_SIDECAR_ARGUMENTS");
  std::istringstream words(added != nullptr ? added : "");
  for (std::string name, value; words >> name >> value;) {
    if (std::find(options.arguments.begin(), options.arguments.end(), name) == options.arguments.end()) {
      arguments.insert(arguments.end(), {name, value});
    }
  }
  return arguments;
}

int remaining(Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<Milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<long>(left, 0, 60000));
}

}  // namespace

std::ostream& operator<<(std::ostream& out, StartAs startAs) {
  return out << (startAs == StartAs::kRoot ? "started by root" : "started by an ordinary user");
}

std::vector<StartAs> startModes() {
  if (::geteuid() != 0) {
    return {StartAs::kOrdinaryUser};
  }
  const char* const modes = std::getenv("STITCHKIT_TEST_START_MODES");
  if (modes != nullptr && std::string_view(modes) == "1") {
    return {StartAs::kRoot};
  }
  return {StartAs::kRoot, StartAs::kOrdinaryUser};
}

std::string userOfItsOwn() {
  constexpr int kFirst = 1000000;  // above those of a system
  return std::to_string(kFirst + ::getpid());
}

StateDirectory::StateDirectory(StartAs startAs)
    : folder_(startAs == StartAs::kOrdinaryUser ? std::optional<uid_t>(kOrdinaryUid) : std::nullopt) {}

RpcError::RpcError(Json error) : std::runtime_error("error answer: " + error.dump()), error_(std::move(error)) {}

std::string sidecarBinary() {
  const char* fromEnvironment = std::getenv("STITCHKIT_SANDBOX_BINARY");
  return fromEnvironment != nullptr ? fromEnvironment : TEST_BINARY;
}

Sidecar::Sidecar(SidecarOptions options) : options_(std::move(options)) {
  if (!options_.state) {
    options_.state = std::make_shared<StateDirectory>(options_.startAs);
  }
  SpawnOptions spawn;
  spawn.argv = {sidecarBinary(), "--state-dir", options_.state->path()};
  const std::vector<std::string> arguments = argumentsOf(options_);
  spawn.argv.insert(spawn.argv.end(), arguments.begin(), arguments.end());
  if (!options_.hardLimits.empty()) {
    std::vector<std::string> limiter{"/usr/bin/prlimit"};
    limiter.insert(limiter.end(), options_.hardLimits.begin(), options_.hardLimits.end());
    spawn.argv.insert(spawn.argv.begin(), limiter.begin(), limiter.end());
  }
  spawn.environment = childEnvironment(options_);
  spawn.descriptors = options_.descriptors;
  if (options_.startAs == StartAs::kOrdinaryUser) {
    spawn.user = kOrdinaryUid;
  }
  std::vector<UniqueFd> theirs;
  openStreams(spawn, theirs);
  pid_ = spawnProgram(spawn);
}

void Sidecar::openStreams(SpawnOptions& spawn, std::vector<UniqueFd>& theirs) {
  UniqueFd theirInput;
  UniqueFd theirOutput;
  if (options_.wiring == Wiring::kPipes) {
    std::tie(theirInput, input_) = makePipe();
    std::tie(output_, theirOutput) = makePipe();
  } else {
    if (options_.wiring == Wiring::kTerminal) {
      std::tie(input_, theirInput) = makeTerminal(terminalName_);
      spawn.controllingTerminal = true;
    } else {
      int ends[2] = {-1, -1};
      must(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
      input_.reset(ends[0]);
      theirInput.reset(ends[1]);
    }
    output_.reset(::fcntl(input_.get(), F_DUPFD_CLOEXEC, 0));
    theirOutput.reset(::fcntl(theirInput.get(), F_DUPFD_CLOEXEC, 0));
  }
  UniqueFd theirError;
  std::tie(stderr_, theirError) = makePipe();
  for (const UniqueFd* ours : {&input_, &output_, &stderr_}) {
    setNonBlocking(ours->get());
  }
  spawn.descriptors.emplace_back(theirInput.get(), 0);
  spawn.descriptors.emplace_back(theirOutput.get(), 1);
  spawn.descriptors.emplace_back(options_.stderrTo >= 0 ? options_.stderrTo : theirError.get(), 2);
  theirs.push_back(std::move(theirInput));
  theirs.push_back(std::move(theirOutput));
  theirs.push_back(std::move(theirError));
}

Sidecar::~Sidecar() {
  if (!ended_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

Json Sidecar::call(std::string_view method, Json params, Milliseconds within) {
  Json answer = response(request(method, std::move(params)), within);
  if (answer.contains("error")) {
    throw RpcError(answer["error"]);
  }
  return answer.at("result");
}

Json Sidecar::callError(std::string_view method, Json params, Milliseconds within) {
  Json answer = response(request(method, std::move(params)), within);
  if (!answer.contains("error")) {
    throw std::runtime_error(std::string(method) + " succeeded: " + answer.dump().substr(0, 500));
  }
  return answer["error"];
}

std::int64_t Sidecar::request(std::string_view method, Json params) {
  const std::int64_t id = nextId_++;
  Json message{{"jsonrpc", "2.0"}, {"id", id}, {"method", method}};
  if (!params.empty()) {
    message["params"] = std::move(params);
  }
  sendRaw(message.dump() + "\n");
  return id;
}

void Sidecar::notify(std::string_view method, Json params) {
  sendRaw(Json{{"jsonrpc", "2.0"}, {"method", method}, {"params", std::move(params)}}.dump() + "\n");
}

namespace {

template <class Match>
std::optional<Json> take(std::deque<Json>& queue, Match match) {
  const auto found = std::find_if(queue.begin(), queue.end(), match);
  if (found == queue.end()) {
    return std::nullopt;
  }
  Json message = std::move(*found);
  queue.erase(found);
  return message;
}

}  // namespace

template <class Ready>
bool Sidecar::readUntil(Milliseconds within, Ready ready) {
  const Instant deadline = Clock::now() + within;
  bool unused = false;
  for (;;) {
    while (!lines_.empty()) {
      std::string line = std::move(lines_.front());
      lines_.pop_front();
      sortIn(std::move(line));
    }
    if (ready()) {
      return true;
    }
    if (outputEnded_ || Clock::now() >= deadline || !pump(deadline, false, unused)) {
      return false;
    }
  }
}

Json Sidecar::response(std::int64_t id, Milliseconds within) {
  std::optional<Json> found;
  readUntil(within, [&] {
    found = take(responses_, [id](const Json& message) { return message.value("id", Json()) == id; });
    return found.has_value();
  });
  if (!found) {
    throw std::runtime_error("no answer to request " + std::to_string(id) + (outputEnded_ ? " (output ended)" : "") +
                             "; stderr: " + stderrText_);
  }
  return *found;
}

Json Sidecar::notification(std::string_view method, Milliseconds within) {
  std::optional<Json> found;
  readUntil(within, [&] {
    found = take(notifications_, [method](const Json& message) { return message.value("method", "") == method; });
    return found.has_value();
  });
  if (!found) {
    throw std::runtime_error("no notification " + std::string(method) + "; stderr: " + stderrText_);
  }
  return *found;
}

std::string Sidecar::outputBytes(Milliseconds within) {
  std::optional<Json> found;
  readUntil(within, [&] {
    found = take(notifications_, [](const Json& message) { return message.value("method", "") == "process.output"; });
    return found.has_value();
  });
  return found ? decodeBase64(found->at("params").at("base64").get<std::string>()).value() : "";
}

Json Sidecar::hostRequest(Milliseconds within) {
  if (!readUntil(within, [&] { return !hostRequests_.empty(); })) {
    throw std::runtime_error("no request to the host; stderr: " + stderrText_);
  }
  Json message = std::move(hostRequests_.front());
  hostRequests_.pop_front();
  return message;
}

void Sidecar::sortIn(std::string line) {
  Json message = Json::parse(line, nullptr, false);
  if (!message.is_object()) {
    throw std::runtime_error("not a message on stdout: " + line.substr(0, 500));
  }
  if (!message.contains("method")) {
    responses_.push_back(std::move(message));
  } else if (message.contains("id")) {
    hostRequests_.push_back(std::move(message));
  } else {
    notifications_.push_back(std::move(message));
  }
}

std::optional<std::string> Sidecar::receiveLine(Milliseconds within) {
  const Instant deadline = Clock::now() + within;
  bool unused = false;
  while (lines_.empty() && !outputEnded_) {
    if (!pump(deadline, false, unused)) {
      throw std::runtime_error("no line in time; stderr: " + stderrText_);
    }
  }
  if (lines_.empty()) {
    return std::nullopt;
  }
  std::string line = std::move(lines_.front());
  lines_.pop_front();
  return line;
}

void Sidecar::sendRaw(std::string_view bytes, Milliseconds within) {
  const Instant deadline = Clock::now() + within;
  while (!bytes.empty()) {
    bool canWrite = false;
    if (!pump(deadline, true, canWrite)) {
      throw std::runtime_error("the sidecar does not take its input; stderr: " + stderrText_);
    }
    if (!canWrite) {
      continue;
    }
    const ssize_t written = ::write(input_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno != EAGAIN && errno != EINTR) {
      throw std::system_error(errno, std::generic_category(), "write to the sidecar; stderr: " + stderrText_);
    }
    bytes.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  }
}

bool Sidecar::pump(Instant deadline, bool wantWrite, bool& canWrite) {
  std::array<pollfd, 3> waiters{{{paused_ || outputEnded_ ? -1 : output_.get(), POLLIN, 0},
                                 {options_.readStderr ? stderr_.get() : -1, POLLIN, 0},
                                 {wantWrite ? input_.get() : -1, POLLOUT, 0}}};
  const int ready = ::poll(waiters.data(), waiters.size(), remaining(deadline));
  if (ready == 0) {
    return false;
  }
  if (waiters[0].revents != 0) {
    takeOutput();
  }
  if (waiters[1].revents != 0) {
    takeStderr();
  }
  canWrite = waiters[2].revents != 0;
  return true;
}

void Sidecar::takeOutput() {
  std::array<char, 65536> buffer{};
  const ssize_t size = ::read(output_.get(), buffer.data(), buffer.size());
  // A terminal whose last user is gone says EIO.
  if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) {
    outputEnded_ = true;
    return;
  }
  partial_.append(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  if (options_.keepTranscript) {
    transcript_.append(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  }
  splitLines();
}

void Sidecar::splitLines() {
  std::size_t start = 0;
  for (auto end = partial_.find('\n'); end != std::string::npos; end = partial_.find('\n', start)) {
    lines_.push_back(partial_.substr(start, end - start));
    start = end + 1;
  }
  partial_.erase(0, start);
}

void Sidecar::takeStderr() {
  std::array<char, 65536> buffer{};
  const ssize_t size = ::read(stderr_.get(), buffer.data(), buffer.size());
  if (size > 0) {
    stderrText_.append(buffer.data(), static_cast<std::size_t>(size));
  } else if (size == 0) {
    stderr_.reset();  // poll(2) passes over -1
  }
}

void Sidecar::closeInput() {
  if (options_.wiring == Wiring::kSocketPair) {
    ::shutdown(input_.get(), SHUT_WR);
  }
  input_.reset();
}

void Sidecar::closeOutput() {
  output_.reset();
  outputEnded_ = true;
}

void Sidecar::kill(int signal) const {
  ::kill(pid_, signal);
}

std::optional<ExitStatus> Sidecar::waitForExit(Milliseconds within) {
  const Instant deadline = Clock::now() + within;
  bool unused = false;
  while (!ended_) {
    ended_ = waitForChild(pid_, Milliseconds(0));
    if (!ended_ && Clock::now() >= deadline) {
      return std::nullopt;
    }
    pump(Clock::now() + Milliseconds(2), false, unused);
  }
  return ended_;
}

}  // namespace stitchkit::testing
