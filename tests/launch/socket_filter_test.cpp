// The filter's program, run by an interpreter: also for architectures that this machine is not. What it does to guests
// is in guest_environment_test.cpp and attacks/socket_families_test.cpp.
#include "backend/launch/launch_helper/socket_filter.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace {

constexpr std::uint32_t kAllow = SECCOMP_RET_ALLOW;
constexpr std::uint32_t kNoCall = SECCOMP_RET_ERRNO | ENOSYS;
constexpr std::uint32_t kNoFamily = SECCOMP_RET_ERRNO | EAFNOSUPPORT;
constexpr std::uint32_t kIoUringSetup = 425;

// As the kernel does it, for the instructions that the filter has. Throws for others, and past the end.
std::uint32_t verdict(std::uint32_t architecture, std::uint32_t number, std::uint64_t argument = 0) {
  const seccomp_data data{static_cast<int>(number), architecture, 0, {argument, 0, 0, 0, 0, 0}};
  std::uint32_t value = 0;
  for (std::size_t at = 0; at < kSocketFilterLength; ++at) {
    const sock_filter& instruction = kSocketFilter[at];
    switch (instruction.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        std::memcpy(&value, reinterpret_cast<const char*>(&data) + instruction.k, sizeof value);
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
        at += value == instruction.k ? instruction.jt : instruction.jf;
        break;
      case BPF_JMP | BPF_JSET | BPF_K:
        at += (value & instruction.k) != 0 ? instruction.jt : instruction.jf;
        break;
      case BPF_RET | BPF_K:
        return instruction.k;
      default:
        throw std::runtime_error("an instruction that the filter should not have");
    }
  }
  throw std::runtime_error("past the end");
}

struct Calls {
  const char* name;
  std::uint32_t architecture, socket, socketpair, getpid, addKey;
};

const Calls kCalls[] = {{"x86-64", AUDIT_ARCH_X86_64, 41, 53, 39, 248},
                        {"i386", AUDIT_ARCH_I386, 359, 360, 20, 286},
                        {"aarch64", AUDIT_ARCH_AARCH64, 198, 199, 172, 217},
                        {"arm", AUDIT_ARCH_ARM, 281, 288, 20, 309}};

}  // namespace

TEST_CASE("on every architecture four families of sockets, no io_uring and no kernel keys", "[filter]") {
  for (const Calls& calls : kCalls) {
    CAPTURE(calls.name);
    CHECK(verdict(calls.architecture, calls.getpid) == kAllow);
    CHECK(verdict(calls.architecture, calls.getpid, AF_VSOCK) == kAllow);
    CHECK(verdict(calls.architecture, kIoUringSetup) == kNoCall);
    for (const std::uint32_t call : {calls.addKey, calls.addKey + 1, calls.addKey + 2}) {
      CHECK(verdict(calls.architecture, call) == kNoCall);
    }
    CHECK(verdict(calls.architecture, calls.addKey - 1) == kAllow);
    CHECK(verdict(calls.architecture, calls.addKey + 3) == kAllow);
    for (const std::uint32_t call : {calls.socket, calls.socketpair}) {
      for (std::uint64_t family = 0; family < AF_MAX + 8; ++family) {
        const bool known = family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK;
        CAPTURE(call, family);
        CHECK(verdict(calls.architecture, call, family) == (known ? kAllow : kNoFamily));
      }
    }
  }
}

TEST_CASE("of a family the kernel takes the lower half, and so does the filter", "[filter]") {
  for (const Calls& calls : kCalls) {
    CHECK(verdict(calls.architecture, calls.socket, (std::uint64_t{AF_UNIX} << 32) | AF_VSOCK) == kNoFamily);
    CHECK(verdict(calls.architecture, calls.socket, (std::uint64_t{AF_VSOCK} << 32) | AF_UNIX) == kAllow);
    CHECK(verdict(calls.architecture, calls.socket, ~std::uint64_t{0}) == kNoFamily);
  }
}

TEST_CASE("the other doors of x86-64: x32 and socketcall", "[filter]") {
  for (const std::uint32_t call : {0U, 39U, 41U, 53U, kIoUringSetup}) {
    CHECK(verdict(AUDIT_ARCH_X86_64, 0x40000000U | call, AF_UNIX) == kNoCall);
  }
  for (std::uint64_t operation = 0; operation < 32; ++operation) {
    CHECK(verdict(AUDIT_ARCH_I386, 102, operation) == kNoCall);
  }
  CHECK(verdict(AUDIT_ARCH_X86_64, 102) == kAllow);  // getuid
}

TEST_CASE("each architecture's numbers are its own", "[filter]") {
  CHECK(verdict(AUDIT_ARCH_I386, 41, AF_VSOCK) == kAllow);      // dup
  CHECK(verdict(AUDIT_ARCH_X86_64, 359, AF_VSOCK) == kAllow);   // nothing
  CHECK(verdict(AUDIT_ARCH_AARCH64, 281, AF_VSOCK) == kAllow);  // execveat
}

TEST_CASE("an architecture that the filter does not know ends the process", "[filter]") {
  CHECK(verdict(AUDIT_ARCH_RISCV64, 198, AF_UNIX) == SECCOMP_RET_KILL_PROCESS);
  CHECK(verdict(AUDIT_ARCH_ARMEB, 20) == SECCOMP_RET_KILL_PROCESS);
}
