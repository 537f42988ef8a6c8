// What a soak must find, found: the rules on made-up figures, the measuring on leaks of this process, and both on a
// whole run.
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <random>
#include <thread>

#include "tests/soak/facts.h"
#include "tests/soak/verdict.h"
#include "tests/support/processes.h"
#include "tests/support/scratch.h"
#include "tests/support/spawn.h"

namespace stitchkit::soak {
namespace {

std::string leaksOf(const std::vector<Row>& rows) {
  std::string leaks;
  for (const Row& row : rows) {
    leaks += row.leak.empty() ? "" : row.what + ": " + row.leak + "\n";
  }
  return leaks;
}

std::vector<long> heap(double perSample, double noise, std::size_t samples = 40) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> around(-noise, noise);
  std::vector<long> made;
  for (std::size_t i = 0; i < samples; ++i) {
    const double warmUp = i < samples / 3 ? 3000.0 * static_cast<double>(i) / static_cast<double>(samples) : 1000;
    made.push_back(static_cast<long>(5000 + warmUp + perSample * static_cast<double>(i) + around(random)));
  }
  return made;
}

TEST_CASE("memory that grows steadily is a leak; a heap that goes up and down, or warms up, is none") {
  CHECK(memoryRow(heap(0, 0)).leak.empty());
  CHECK(memoryRow(heap(0, 2000)).leak.empty());
  CHECK(memoryRow(heap(-100, 500)).leak.empty());
  CHECK(memoryRow(heap(10, 100)).leak.empty());  // certain, and too small to matter
  CHECK_FALSE(memoryRow(heap(60, 0)).leak.empty());
  CHECK_FALSE(memoryRow(heap(150, 1500)).leak.empty());
  CHECK_FALSE(memoryRow(heap(300, 100, 11)).leak.empty());  // as few as a run of a minute has
  CHECK(memoryRow({1}).leak.empty());
}

TEST_CASE("more of anything is a leak, and fewer is none") {
  SidecarFacts before;
  before.descriptors = {{"socket", 3}, {"pipe", 2}};
  before.threads = 5;
  before.children = 1;
  CHECK(clean(compare("x", before, before)));
  SidecarFacts after = before;
  after.descriptors["pipe"] = 1;
  after.threads = 4;
  after.children = 0;
  CHECK(clean(compare("x", before, after)));
  after.descriptors["eventfd"] = 2;
  CHECK(leaksOf(compare("x", before, after)) == "x: descriptors: 2 eventfd\n");
  after = before;
  after.threads = 6;
  after.children = 3;
  after.zombies = 1;
  CHECK(leaksOf(compare("x", before, after)) == "x: threads: 1 more\nx: children: 2 more\nx: zombies: 1 more\n");
  MachineFacts machine;
  machine.mounts = {"a"};
  MachineFacts later = machine;
  later.mounts = {"b"};
  later.cgroups = {"c"};
  CHECK(leaksOf(compare(machine, later)) == "mounts: b\ncgroups: c\n");
  CHECK(tableText(compare(machine, later)).find("LEAKED: b") != std::string::npos);
}

TEST_CASE("what a process holds is seen: descriptors by kind, threads, children, zombies, memory") {
  testing::reapOrphans({});
  const SidecarFacts before = factsOf(::getpid());
  int ends[2] = {-1, -1};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  std::vector<char> memory(8U * 1024 * 1024, 'x');
  std::mutex mutex;
  std::condition_variable over;
  bool isOver = false;
  std::thread thread([&] {
    std::unique_lock lock(mutex);
    over.wait(lock, [&] { return isOver; });
  });
  testing::SpawnOptions options;
  options.argv = {"/bin/sleep", "100"};
  const pid_t child = testing::spawnProgram(options);
  SidecarFacts after = factsOf(::getpid());
  const std::string leaks = leaksOf(compare("x", before, after));
  CHECK(leaks == "x: descriptors: 2 socket\nx: threads: 1 more\nx: children: 1 more\n");
  CHECK(after.anonymousKib >= before.anonymousKib + 8000);
  CHECK(memory.back() == 'x');
  ::kill(child, SIGKILL);
  CHECK(testing::eventually([&] { return factsOf(::getpid()).zombies == before.zombies + 1; }));
  testing::waitForChild(child, testing::Milliseconds(15000));
  {
    const std::lock_guard lock(mutex);
    isOver = true;
  }
  over.notify_all();
  thread.join();
  ::close(ends[0]);
  ::close(ends[1]);
  CHECK(clean(compare("x", before, factsOf(::getpid()))));
}

TEST_CASE("what the machine holds of ours is seen: files, sockets, leftovers, processes") {
  const testing::ScratchFolder state;
  std::filesystem::create_directories(state / "ns/staging");
  std::filesystem::create_directories(state / "ns/templates/k/data/of a template");
  const MachineFacts before = machineFacts(state.path());
  testing::writeFile(state / "ns/staging/left", "left");
  const std::string leftover = "/tmp/stitchkit-soak-test-" + testing::uniqueDigits();
  testing::writeFile(leftover, "left");
  const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (state / "ns/socket").copy(address.sun_path, sizeof address.sun_path - 1);
  REQUIRE(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  testing::SpawnOptions options;
  options.argv = {"/bin/sleep", "100"};
  const pid_t child = testing::spawnProgram(options);
  const std::vector<Row> rows = compare(before, machineFacts(state.path()));
  const std::string leaks = leaksOf(rows);
  CAPTURE(leaks);
  // Other tests of this machine may hold more meanwhile.
  CHECK(leaks.find("/ns/socket") != std::string::npos);
  CHECK(leaks.find(leftover) != std::string::npos);
  CHECK(leaks.find("state directory: ns/socket, ns/staging/left\n") != std::string::npos);
  CHECK(leaks.find("processes: " + std::to_string(child) + " sleep\n") != std::string::npos);
  ::kill(child, SIGKILL);
  testing::waitForChild(child, testing::Milliseconds(15000));
  ::unlink(leftover.c_str());
}

TEST_CASE("a run with leaks says which, and fails") {
  const testing::ProgramResult result = testing::runProgram(
      {SOAK_PROGRAM, "3", "--seed", "1", "--leak", "handle", "--leak", "file", "--leak", "process"});
  CAPTURE(result.output);
  CHECK(result.status.code == 1);
  CHECK(result.output.find("FAILED") == std::string::npos);
  for (const char* leak :
       {"no session: descriptors", "no session: children", "/tmp and its like", "state directory", "processes"}) {
    CAPTURE(leak);
    const auto row = result.output.find(leak);
    REQUIRE(row != std::string::npos);
    CHECK(result.output.substr(row, result.output.find('\n', row) - row).find("LEAKED") != std::string::npos);
  }
  CHECK(result.output.find("NOT clean") != std::string::npos);
}

}  // namespace
}  // namespace stitchkit::soak
