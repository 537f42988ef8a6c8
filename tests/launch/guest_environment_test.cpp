// What a guest sees of the world (PROTOCOL.md, 5; cases/security.md, 44, 45, 50; cases/process.md, 21).
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "rpc/base/unique_fd.h"
#include "tests/launch/launch_fixture.h"

using namespace stitchkit;
using namespace stitchkit::test;

TEST_CASE("the environment is exact", "[guest][view]") {
  LaunchFixture fixture;
  Command command = LaunchFixture::command("/usr/bin/env");
  REQUIRE(::mkdir((fixture.workspace() + "/below").c_str(), 0755) == 0);
  command.workingDirectory = "/workspace/below";
  command.environment = {{"B", "2"}, {"HOME", "/elsewhere"}, {"A", "1\n="}, {"EMPTY", ""}};
  CHECK(fixture.run(command)->standardOutput ==
        "PATH=/usr/bin:/bin\nHOME=/elsewhere\nB=2\nA=1\n=\nEMPTY=\nPWD=/workspace/below\n");
  command.environment = {{"PWD", "mine"}, {"PATH", "/usr/bin"}};
  CHECK(fixture.run(command)->standardOutput == "PATH=/usr/bin\nHOME=/workspace\nPWD=mine\n");
}

TEST_CASE("the guest's PATH finds its program", "[guest][view]") {
  LaunchFixture fixture;
  writeFile(fixture.workspace() + "/tool", "#!/bin/sh\necho mine\n", 0755);
  Command command = LaunchFixture::command("tool");
  CHECK(fixture.run(command)->exitCode == 127);
  command.environment = {{"PATH", "/workspace"}};
  CHECK(fixture.run(command)->standardOutput == "mine\n");
}

TEST_CASE("only three descriptors are open", "[guest][view]") {
  LaunchFixture fixture;
  writeFile(fixture.workspace() + "/../secret", "s3cret");
  const UniqueFd inherited(::open((fixture.workspace() + "/../secret").c_str(), O_RDONLY));  // no CLOEXEC on purpose
  REQUIRE(inherited.valid());
  const GuestOutcome outcome = fixture.runShell("ls /proc/$$/fd");
  CHECK(outcome.standardOutput == "0\n1\n2\n");
  CHECK(fixture.runShell("ls /proc/1/fd").standardOutput.find("3\n4\n5") == std::string::npos);
}

TEST_CASE("process 1 shows neither host paths nor secrets", "[guest][view]") {
  LaunchFixture fixture;
  REQUIRE(::setenv("HOST_TOKEN", "t0p", 1) == 0);
  const GuestOutcome outcome = fixture.runShell(
      "for p in 1 $$; do tr '\\0' '\\n' </proc/$p/environ; echo; tr '\\0' ' ' </proc/$p/cmdline; echo; done");
  ::unsetenv("HOST_TOKEN");
  CHECK(outcome.standardError.empty());
  CHECK(outcome.standardOutput.find("t0p") == std::string::npos);
  CHECK(outcome.standardOutput.find("/tmp/") == std::string::npos);
  CHECK(outcome.standardOutput.find("bwrap --args 4 -- /run/stitchkit-launch") != std::string::npos);
}

TEST_CASE("signals are as a fresh process has them", "[guest][view]") {
  LaunchFixture fixture;
  sigset_t blocked;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGTERM);
  ::sigaddset(&blocked, SIGRTMIN);
  ::sigprocmask(SIG_BLOCK, &blocked, nullptr);
  const GuestOutcome outcome =
      fixture.runShell("cat /proc/self/status | grep -E 'Sig(Blk|Ign|Cgt)|ShdPnd'; yes | head -1");
  ::sigprocmask(SIG_UNBLOCK, &blocked, nullptr);
  CHECK(outcome.standardError.empty());
  CHECK(outcome.standardOutput ==
        "ShdPnd:\t0000000000000000\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"
        "SigCgt:\t0000000000000000\ny\n");
}

TEST_CASE("the guest is agent on sandbox, without powers", "[guest][view]") {
  LaunchFixture fixture;
  CHECK(fixture.runShell("umask; whoami; id -u; id -g; hostname; pwd; ps -o pid= -p $$ >/dev/null; echo ~")
            .standardOutput == "0022\nagent\n1000\n1000\nsandbox\n/workspace\n/workspace\n");
  CHECK(fixture.runShell("grep -h Cap /proc/self/status | sort -u | cut -f2 | sort -u").standardOutput ==
        "0000000000000000\n");
  CHECK(fixture.runShell("grep -h NoNewPrivs /proc/self/status").standardOutput == "NoNewPrivs:\t1\n");
  CHECK(fixture.runShell("unshare -U true").exitCode != 0);
  CHECK(fixture.runShell("cat /dev/tty").exitCode != 0);
}

TEST_CASE("what may be written, and what not", "[guest][view]") {
  LaunchFixture fixture;
  CHECK(fixture
            .runShell("for d in / /usr /etc /dev /run /proc/sys /bin; do touch $d/x 2>/dev/null && echo $d; done; true")
            .standardOutput.empty());
  // Two switches are the PID namespace's own and end with it.
  CHECK(fixture.runShell("find /proc/sys -writable ! -name ns_last_pid ! -name pid_max 2>/dev/null; true")
            .standardOutput.empty());
  CHECK(fixture.runShell("test -w /proc/sys/kernel/core_pattern").exitCode == 1);
  CHECK(fixture.runShell("touch /workspace/a /tmp/a /dev/shm/a").exitCode == 0);
  CHECK(exists(fixture.workspace() + "/a"));
  CHECK(fixture.runShell("stat -c %a /tmp /dev/shm").standardOutput == "1777\n1777\n");
  CHECK(fixture.runShell("head -c 17000000 /dev/zero > /tmp/full").exitCode != 0);
  CHECK(fixture.runShell("head -c 70000000 /dev/zero > /dev/shm/full").exitCode != 0);
  CHECK(fixture.runShell("test -e /etc/shadow || test -e /home || test -e /root || test -e /var").exitCode == 1);
}

TEST_CASE("the network is as the profile says", "[guest][view]") {
  LaunchFixture fixture;
  CHECK(fixture.runShell("grep -c : /proc/net/dev").standardOutput == "1\n");
  CHECK(fixture.runShell("cat /etc/resolv.conf").standardOutput.empty());
  LaunchProfile open = fixture.profile();
  open.network = NetworkMode::kHost;
  open.resolvConf = fixture.workspace() + "/../resolv.conf";
  writeFile(open.resolvConf, "nameserver 192.0.2.1\n");
  std::string output;
  const auto guest = Guest::start(fixture.io, fixture.prepared(open),
                                  LaunchFixture::shell("readlink /proc/self/ns/net; cat /etc/resolv.conf"), {}, {},
                                  [&](Result<GuestOutcome> outcome) { output = outcome.value().standardOutput; });
  fixture.io.restart();
  fixture.io.run();
  char ours[64] = {};
  REQUIRE(::readlink("/proc/self/ns/net", ours, sizeof ours - 1) > 0);
  CHECK(output == std::string(ours) + "\nnameserver 192.0.2.1\n");
}

TEST_CASE("a filter is on whatever the network is, and in pid 1 as well", "[guest][view]") {
  LaunchFixture fixture;
  LaunchProfile profile = fixture.profile();
  profile.network = GENERATE(NetworkMode::kDenied, NetworkMode::kHost);
  const std::string ours = readFile("/proc/self/status");
  const std::string label = "Seccomp_filters:\t";
  REQUIRE(ours.find(label) != std::string::npos);
  const std::string one = label + std::to_string(std::stoi(ours.substr(ours.find(label) + label.size())) + 1) + "\n";
  const Command filters = LaunchFixture::shell("grep -h Seccomp_filters /proc/self/status /proc/1/status");
  CHECK(fixture.run(filters, fixture.prepared(profile))->standardOutput == one + one);
}

TEST_CASE("four families of sockets are left", "[guest][view]") {
  LaunchFixture fixture;
  writeFile(fixture.workspace() + "/families.py", R"(
import errno, socket as s
def name(family):
    try:
        s.socket(family, s.SOCK_DGRAM).close()
    except OSError as error:
        return errno.errorcode[error.errno]
    return 'ok'
print([name(f) for f in (s.AF_UNIX, s.AF_INET, s.AF_INET6, s.AF_NETLINK)])
print({name(f) for f in (0, s.AF_VSOCK, s.AF_ALG, s.AF_PACKET, 44, 46, 1000)})
a, b = s.socketpair()
a.send(b'pair')
print(b.recv(4), s.if_nameindex(), s.getaddrinfo('localhost', 80, s.AF_INET, s.SOCK_STREAM)[0][4])
)");
  const GuestOutcome outcome = fixture.runShell("/usr/bin/python3 families.py");
  CHECK(outcome.standardError == "");
  CHECK(outcome.standardOutput ==
        "['ok', 'ok', 'ok', 'ok']\n{'EAFNOSUPPORT'}\nb'pair' [(1, 'lo')] ('127.0.0.1', 80)\n");
}

TEST_CASE("programs that wait for many things at once work without a network", "[guest][view]") {
  LaunchFixture fixture;
  writeFile(fixture.workspace() + "/many.py", R"(
import asyncio
async def serve(reader, writer):
    writer.write(await reader.readline())
    await writer.drain()
    writer.close()
async def main():
    server = await asyncio.start_server(serve, '127.0.0.1', 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b'echo\n')
    child = await asyncio.create_subprocess_exec('/bin/echo', 'child', stdout=asyncio.subprocess.PIPE)
    print(await reader.readline(), (await child.communicate())[0])
asyncio.run(main())
)");
  const GuestOutcome python = fixture.runShell("/usr/bin/python3 many.py");
  CHECK(python.standardError == "");
  CHECK(python.standardOutput == "b'echo\\n' b'child\\n'\n");
  if (exists("/usr/bin/node")) {
    writeFile(fixture.workspace() + "/many.mjs", R"(
import { createServer, connect } from 'node:net';
import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
const server = createServer(end => end.pipe(end)).listen(0, '127.0.0.1', () => {
  const end = connect(server.address().port, '127.0.0.1', () => end.end('echo'));
  end.on('data', async data => {
    console.log(String(data), String(execFileSync('/bin/echo', ['child'])).trim(), (await readFile('many.py')).length > 0);
    server.close();
  });
});
)");
    const GuestOutcome node = fixture.runShell("/usr/bin/node many.mjs");
    CHECK(node.standardError == "");
    CHECK(node.standardOutput == "echo child true\n");
  }
}

TEST_CASE("everyday programs work", "[guest][view]") {
  LaunchFixture fixture;
  CHECK(fixture.runShell("echo 'a b' | awk '{print $2}'").standardOutput == "b\n");
  CHECK(fixture.runShell("getent hosts localhost").standardOutput.find("localhost") != std::string::npos);
  if (exists("/usr/bin/git")) {
    const GuestOutcome outcome = fixture.runShell(
        "mkdir r && cd r && git init -q && echo x > f && git add f && git commit -qm first && git log --format='%an "
        "<%ae>'");
    CHECK(outcome.standardError == "");
    CHECK(outcome.standardOutput == "Agent <agent@sandbox.localdomain>\n");
  }
  if (exists("/usr/bin/gcc")) {
    const GuestOutcome outcome =
        fixture.runShell("printf 'int main(void) { return 7; }' > m.c && gcc -o /tmp/m m.c && /tmp/m");
    CHECK(outcome.standardError == "");
    CHECK(outcome.exitCode == 7);
  }
  if (exists("/usr/bin/python3")) {
    CHECK(
        fixture
            .runShell("/usr/bin/python3 -c 'import ssl; print(len(ssl.create_default_context().get_ca_certs()) > 10)'")
            .standardOutput == "True\n");
    CHECK(fixture
              .runShell(
                  "/usr/bin/python3 -c 'import multiprocessing as m; p = m.Pool(2); print(sum(p.map(abs, [-1, -2])))'")
              .standardOutput == "3\n");
  }
}
