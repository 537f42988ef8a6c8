#include "tests/launch/launch_fixture.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <thread>

#include "backend/launch/support_files.h"
#include "backend/launch/system_call_filter.h"

namespace stitchkit::test {
namespace fs = std::filesystem;
namespace {

struct Shared {
  TemporaryDirectory directory;
  SupportFiles support{directory.path() + "/support"};
  std::string bubblewrap = directory.path() + "/bwrap";
  Shared() { fs::copy_file("/usr/bin/bwrap", bubblewrap); }
};

Shared& shared() {
  static Shared made;
  return made;
}

template <class Visit>
void forEachProcess(Visit visit) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") == std::string::npos) {
      visit(entry.path().string());
    }
  }
}

}  // namespace

TemporaryDirectory::TemporaryDirectory() : path_("/tmp/stitchkit-launch-XXXXXX") {
  REQUIRE(::mkdtemp(path_.data()) != nullptr);
  REQUIRE(::chmod(path_.c_str(), 0711) == 0);
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

LaunchFixture::LaunchFixture() {
  REQUIRE(::mkdir(workspace().c_str(), 0700) == 0);
  struct stat status {};
  REQUIRE(::stat(workspace().c_str(), &status) == 0);
  identity_ = {status.st_dev, status.st_ino};
}

LaunchProfile LaunchFixture::profile() const {
  const Result<SupportPaths> support = shared().support.ensure();
  REQUIRE(support.has_value());
  LaunchProfile made;
  made.workspace = workspace();
  made.etcDirectory = support->etcDirectory;
  made.helper = support->helper;
  made.tmpBytes = 16U << 20;
  made.systemCalls = systemCallFilter().value();
  made.system = probeSystemLayout();
  return made;
}

PreparedProfile LaunchFixture::prepared(const LaunchProfile& made) const {
  return {fixtureBubblewrap(), made, identity_};
}

Command LaunchFixture::command(std::string executable, std::vector<std::string> arguments) {
  Command made;
  made.executable = std::move(executable);
  made.arguments = std::move(arguments);
  made.workingDirectory = "/workspace";
  made.timeout = std::chrono::seconds(30);
  made.maxOutputBytes = 16U << 20;
  return made;
}

std::shared_ptr<Guest> LaunchFixture::start(const Command& command, std::string standardInput, GuestOptions options,
                                            Guest::Completion completion) {
  return Guest::start(io, prepared(), command, std::move(standardInput), std::move(options), std::move(completion));
}

Result<GuestOutcome> LaunchFixture::run(const Command& command, std::string standardInput, GuestOptions options) {
  std::optional<Result<GuestOutcome>> result;
  start(command, std::move(standardInput), std::move(options),
        [&result](Result<GuestOutcome> outcome) { result.emplace(std::move(outcome)); });
  io.restart();
  io.run();
  REQUIRE(result.has_value());
  return std::move(*result);
}

Result<GuestOutcome> LaunchFixture::run(const Command& command, const PreparedProfile& profile) {
  std::optional<Result<GuestOutcome>> result;
  const auto guest = Guest::start(io, profile, command, {}, {},
                                  [&result](Result<GuestOutcome> outcome) { result.emplace(std::move(outcome)); });
  io.restart();
  io.run();
  REQUIRE(result.has_value());
  return std::move(*result);
}

GuestOutcome LaunchFixture::runShell(std::string script, std::string standardInput) {
  Result<GuestOutcome> result = run(shell(std::move(script)), std::move(standardInput));
  if (!result) {
    FAIL(result.error().message << " (" << result.error().privateDetail << ")");
  }
  return std::move(*result);
}

const std::string& fixtureBubblewrap() {
  return shared().bubblewrap;
}

int liveSandboxes() {
  return liveSandboxes(fixtureBubblewrap());
}

int liveSandboxes(const std::string& bubblewrap) {
  int count = 0;
  forEachProcess([&](const std::string& process) {
    std::error_code ignored;
    count += fs::read_symlink(process + "/exe", ignored) == bubblewrap ? 1 : 0;
  });
  return count;
}

int processesNamed(const std::string& marker) {
  int count = 0;
  forEachProcess([&](const std::string& process) {
    count += readFile(process + "/cmdline").find(marker) != std::string::npos ? 1 : 0;
  });
  return count;
}

bool eventually(const std::function<bool()>& condition, double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

int openDescriptors() {
  return static_cast<int>(std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

int zombies() {
  int count = 0;
  const std::string parent = "PPid:\t" + std::to_string(::getpid()) + "\n";
  forEachProcess([&](const std::string& process) {
    const std::string status = readFile(process + "/status");
    count += status.find(parent) != std::string::npos && status.find("State:\tZ") != std::string::npos ? 1 : 0;
  });
  return count;
}

void writeFile(const std::string& path, const std::string& text, int mode) {
  std::ofstream(path, std::ios::binary) << text;
  REQUIRE(::chmod(path.c_str(), static_cast<mode_t>(mode)) == 0);
}

std::string readFile(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

bool exists(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

}  // namespace stitchkit::test
