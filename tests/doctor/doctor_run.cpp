#include "tests/doctor/doctor_run.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "tests/support/sidecar.h"

namespace stitchkit::testing {
namespace {

constexpr uid_t kDaemon = 1;

/// A program's stdout, with stdin from a text; its stderr is this process's.
struct Ended {
  ExitStatus status;
  std::string output;
};

std::vector<std::string> environment() {
  std::vector<std::string> all{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
  for (const char* name : {"ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS"}) {
    if (const char* value = std::getenv(name)) {
      all.push_back(std::string(name) + "=" + value);
    }
  }
  return all;
}

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Pipe newPipe() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw std::runtime_error("pipe2");
  }
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Ended run(const ScratchFolder& folder, const Surroundings& where, const std::string& command, const Arguments& more,
          const std::string& input) {
  Pipe in = newPipe();
  Pipe out = newPipe();
  SpawnOptions options;
  options.argv = where.wrapper;
  options.argv.insert(options.argv.end(), {sidecarBinary(), command, "--state-dir", folder.path() + where.state});
  options.argv.insert(options.argv.end(), where.options.begin(), where.options.end());
  options.argv.insert(options.argv.end(), more.begin(), more.end());
  options.environment = environment();
  options.descriptors = {{in.read.get(), 0}, {out.write.get(), 1}, {STDERR_FILENO, 2}};
  options.user = where.user;
  const pid_t child = spawnProgram(options);
  in.read.reset();
  out.write.reset();
  if (::write(in.write.get(), input.data(), input.size()) != static_cast<ssize_t>(input.size())) {
    throw std::runtime_error("write requests");
  }
  in.write.reset();
  Ended ended;
  std::array<char, 4096> buffer{};
  for (ssize_t size = 0; (size = ::read(out.read.get(), buffer.data(), buffer.size())) > 0;) {
    ended.output.append(buffer.data(), static_cast<std::size_t>(size));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ended.status = WIFEXITED(status) ? ExitStatus{WEXITSTATUS(status), 0} : ExitStatus{-1, WTERMSIG(status)};
  return ended;
}

}  // namespace

Arguments surroundings(Arguments options) {
  options.insert(options.begin(), SURROUNDINGS);
  return options;
}

std::optional<uid_t> ordinaryUser() {
  return ::geteuid() == 0 ? std::optional<uid_t>(kOrdinaryUid) : std::nullopt;
}

Json doctorReport(const ScratchFolder& folder, const Surroundings& where) {
  const Ended ended = run(folder, where, "doctor", {"--json"}, "");
  INFO(ended.output);
  Json report = Json::parse(ended.output, nullptr, false);
  REQUIRE(report.is_object());
  REQUIRE(report.contains("ok"));
  CHECK(ended.status.code == (report["ok"] == true ? 0 : 1));
  return report;
}

Json checkOf(const Json& report, const std::string& name) {
  for (const Json& check : report["checks"]) {
    if (check["name"] == name) {
      return check;
    }
  }
  return nullptr;
}

std::vector<Json> converse(const ScratchFolder& folder, const Surroundings& where, const std::vector<Json>& requests) {
  std::string input;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Json request = requests[i];
    request["jsonrpc"] = "2.0";
    request["id"] = i + 1;
    input += request.dump() + "\n";
  }
  const Ended ended = run(folder, where, "serve", {"--serial"}, input);
  std::vector<Json> answers;
  for (std::size_t begin = 0; begin < ended.output.size();) {
    const std::size_t end = ended.output.find('\n', begin);
    answers.push_back(Json::parse(ended.output.substr(begin, end - begin)));
    begin = end + 1;
  }
  REQUIRE(answers.size() == requests.size());
  CHECK(ended.status.code == 0);
  return answers;
}

std::string oldBubblewrap(const ScratchFolder& folder) {
  const std::string path = folder / "old-bwrap";
  writeFile(path,
            "#!/bin/sh\n"
            "test \"$1\" = --version && { echo 'bubblewrap 0.4.0'; exit 0; }\n"
            "echo 'bwrap: Unknown option --disable-userns' >&2\n"
            "exit 1\n",
            0755);
  return path;
}

std::string setuidBubblewrap(const ScratchFolder& folder) {
  const std::string path = folder / "setuid-bwrap";
  std::filesystem::copy_file("/usr/bin/bwrap", path);
  REQUIRE(::chown(path.c_str(), kDaemon, kDaemon) == 0);
  REQUIRE(::chmod(path.c_str(), 04755) == 0);
  return path;
}

}  // namespace stitchkit::testing
