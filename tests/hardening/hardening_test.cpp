// The flags that the programs were to be built with, by what they leave in the files.
#include "tests/support/spawn.h"

#include <catch2/catch.hpp>

#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace stitchkit::testing {
namespace {

/// What a file lacks, in words.
class Faults {
 public:
  Faults() = default;
  Faults(std::initializer_list<std::string> faults) : faults_(faults) {}

  void require(bool good, const char* fault) {
    if (!good) {
      faults_.insert(fault);
    }
  }

  friend bool operator==(const Faults&, const Faults&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Faults& faults) {
    return out << Catch::Detail::stringify(faults.faults_);
  }

 private:
  std::set<std::string> faults_;
};

std::string outputOf(std::vector<std::string> argv) {
  const ProgramResult result = runProgram(std::move(argv));
  INFO(result.output);
  REQUIRE(result.status.code == 0);
  return result.output;
}

/// Whether a line of the text has a match.
bool has(const std::string& text, const char* expression) {
  const std::regex wanted(expression);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_search(line, wanted)) {
      return true;
    }
  }
  return false;
}

/// What its headers say of a program; one without a dynamic loader may pass as well.
Faults layoutFaults(const std::string& program) {
  const std::string text =
      outputOf({"/usr/bin/readelf", "--wide", "--file-header", "--segments", "--dynamic", program});
  Faults faults;
  faults.require(has(text, R"(^ *Type: +DYN )") && has(text, R"(\(FLAGS_1\).* PIE)"), "at a fixed address");
  faults.require(has(text, R"(^ *GNU_RELRO )"), "relocated data stays writable");
  faults.require(has(text, R"(\(FLAGS\).*BIND_NOW)"), "binds lazily");
  faults.require(has(text, R"(^ *GNU_STACK .* RW +0x)"), "stack is executable");
  faults.require(!has(text, R"(^ *LOAD .* RWE +0x)"), "code is writable");
  faults.require(!has(text, R"(\((RPATH|RUNPATH)\))"), "has a place of its own for libraries");
  faults.require(!has(text, R"(\(TEXTREL\)|\(FLAGS\).*TEXTREL)"), "code is relocated");
  return faults;
}

#if defined(__x86_64__)
std::string codeOf(const std::string& program) {
  return outputOf({"/usr/bin/objdump", "--disassemble", "--no-show-raw-insn", program});
}

// Where a canary is read, and how GCC touches a page of a large frame.
constexpr const char* kCanary = R"(%fs:0x28)";
constexpr const char* kProbe = R"(or[bql] +\$0x0,(0x[0-9a-f]+)?\(%rsp\))";

/// What the compiler puts into the code of a program that has symbols and a large frame.
Faults codeFaults(const std::string& program) {
  const std::string code = codeOf(program);
  const std::size_t main = code.find("<main>:\n");
  REQUIRE(main != std::string::npos);
  Faults faults;
  faults.require(has(code, kCanary), "no canary");
  faults.require(has(code, kProbe), "large frames are not probed");
  faults.require(has(code.substr(main, 100), "endbr64"), "targets of jumps have no mark");
  return faults;
}
#endif

/// What the compiler wants of the C library; of a program or an archive.
Faults symbolFaults(const std::string& file) {
  const std::string symbols = outputOf({"/usr/bin/readelf", "--wide", "--symbols", file});
  Faults faults;
  faults.require(has(symbols, R"( UND __stack_chk_fail\b)"), "no stack protector");
  faults.require(has(symbols, R"( UND __(?!stack)[a-z]\w*_chk\b)"), "unchecked functions of the C library");
  return faults;
}

std::vector<std::string> rooms() {
  std::vector<std::string> archives;
  std::istringstream text(ROOMS);
  for (std::string archive; std::getline(text, archive, ':');) {
    archives.push_back(archive);
  }
  return archives;
}

TEST_CASE("the sidecar is built with the distribution's hardening flags") {
  CHECK(layoutFaults(SIDECAR) == Faults{});
  CHECK(symbolFaults(SIDECAR) == Faults{});
}

// Debian's own libraries are in the sidecar, too: they would hide that a room of ours is built without.
TEST_CASE("each room is built with the distribution's hardening flags") {
  REQUIRE(rooms().size() == 13);
  for (const std::string& room : rooms()) {
    INFO(room);
    CHECK(symbolFaults(room) == Faults{});
  }
}

TEST_CASE("the launch helper is built with the distribution's hardening flags") {
  CHECK(layoutFaults(LAUNCH_HELPER) == Faults{});
}

TEST_CASE("a program without hardening flags is seen to lack them") {
  CHECK(layoutFaults(UNHARDENED) == Faults{"at a fixed address", "relocated data stays writable", "binds lazily",
                                           "stack is executable", "code is writable",
                                           "has a place of its own for libraries"});
  CHECK(symbolFaults(UNHARDENED) == Faults{"no stack protector", "unchecked functions of the C library"});
}

#if defined(__x86_64__)
TEST_CASE("what hardening adds to the code is in the programs") {
  CHECK(codeFaults(SIDECAR) == Faults{});
  CHECK(has(codeOf(LAUNCH_HELPER), kCanary));
  CHECK(codeFaults(UNHARDENED) == Faults{"no canary", "large frames are not probed", "targets of jumps have no mark"});
}
#endif

}  // namespace
}  // namespace stitchkit::testing
