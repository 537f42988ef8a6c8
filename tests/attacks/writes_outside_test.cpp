// A guest writes into /workspace, /tmp and /dev/shm, and nowhere else. Below /proc/sys it is only asked, never written.
#include "tests/attacks/attempts.h"

#include <unistd.h>

#include <catch2/catch.hpp>

namespace stitchkit::testing {
namespace {

const std::string kMake =
    "for d in / /usr /usr/bin /usr/lib /etc /etc/ssl /dev /dev/pts /run /proc /sys /var /home /root /opt /workspace/.. "
    "/bin /lib; do (: > $d/attack-made) 2>/dev/null && echo file:$d; mkdir $d/attack-dir 2>/dev/null && echo dir:$d; "
    "rm -rf $d/attack-made $d/attack-dir 2>/dev/null; done; true";

// The sysctls and triggers of the host. `-writable` asks access(2).
const std::string kAsk =
    "find /proc/sys /proc/sysrq-trigger /proc/irq /proc/bus /proc/acpi /proc/scsi /proc/fs /sys -type f -writable "
    "2>/dev/null | head; test -w /proc/sys/kernel/core_pattern && echo core_pattern; true";

TEST_CASE("nothing outside of the guest's own places can be written") {
  const Footing footing = GENERATE(from_range(footings()));
  CAPTURE(footing);
  Sidecar sidecar(optionsFor(footing));
  Session session(sidecar);
  CHECK(session.sh(kMake).out == "");
  CHECK(session
            .sh("for f in /etc/passwd /usr/bin/env /etc/resolv.conf /etc/ld.so.cache; do [ -e $f ] && test -w $f && "
                "echo $f; chmod 777 $f 2>/dev/null && echo chmod $f; touch $f 2>/dev/null && echo touch $f; done; true")
            .out == "");
  CHECK(session.sh(kAsk).out == "");
  // Beside it: where it may write, it can.
  const auto own = session.sh("for d in /workspace /tmp /dev/shm; do : > $d/made && echo $d; done");
  CHECK(own.out == "/workspace\n/tmp\n/dev/shm\n");
}

TEST_CASE("control: the host's root in a plain bwrap may write sysctls (asked only)") {
  if (::geteuid() != 0) {
    return;
  }
  const auto asked = weakSandbox({"--unshare-user"}, {"/bin/sh", "-c", kAsk}, std::nullopt);
  REQUIRE(asked.output.find("core_pattern") != std::string::npos);
}

TEST_CASE("what a guest fills is bounded where the memory is the host's") {
  Sidecar sidecar;
  Session session(sidecar);
  // /tmp is 256 MiB by default; /dev/shm and every other tmpfs have a size of their own.
  for (const char* place : {"/tmp/fill", "/dev/shm/fill"}) {
    const auto size =
        session.sh("dd if=/dev/zero of=" + std::string(place) + " bs=1M count=600 2>/dev/null; stat -c %s " + place);
    CAPTURE(place, size.out);
    CHECK(std::stoll(size.out) <= 268435456);
  }
}

}  // namespace
}  // namespace stitchkit::testing
