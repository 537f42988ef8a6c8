// What the filter of system calls refuses is nothing that compilers, version control, interpreters and package managers
// work with. Those that ./dev installs have to be there; others are tried where the machine has them, and said to be
// missing where not. No network is touched.
#include "tests/attacks/attempts.h"

#include <catch2/catch.hpp>

#include <filesystem>

namespace stitchkit::testing {
namespace {

void works(const std::string& script, const std::string& output) {
  SidecarOptions options;
  options.startAs = startModes().front();
  Sidecar sidecar(std::move(options));
  Session session(sidecar);
  const auto done = session.sh("set -e\n" + script);
  CAPTURE(script, done.err);
  CHECK(done.out == output);
  CHECK(done.exitCode == 0);
}

// Only what lies below /usr is a guest's.
bool isHere(const std::string& program) {
  if (std::filesystem::exists("/usr/bin/" + program)) {
    return true;
  }
  WARN(program << " is not below /usr/bin here: not tried");
  return false;
}

TEST_CASE("gcc compiles and links, make runs it beside itself, and threads run") {
  works(R"(cat > main.c <<'END'
#include <pthread.h>
#include <stdio.h>
static void* run(void* text) { puts(text); return NULL; }
int main(void) {
  pthread_t thread;
  return pthread_create(&thread, NULL, run, "from a thread") != 0 || pthread_join(thread, NULL) != 0;
}
END
printf 'all: a b\na b: main.c\n\tgcc -O2 -pipe -pthread -o $@ main.c\n' > Makefile
make -s -j2
./a
setarch -R ./b)",
        "from a thread\nfrom a thread\n");
}

TEST_CASE("a program compiled with a sanitizer runs") {
  works(
      "echo 'int main(int c, char** v) { return v[c] != 0; }' > main.c\n"
      "gcc -g -fsanitize=address,undefined main.c -o main\n"
      "ASAN_OPTIONS=detect_leaks=0 ./main && echo clean",
      "clean\n");
}

TEST_CASE("git makes, changes, packs and clones a repository") {
  works(
      "git init -q one && cd one && echo 1 > f && git add f && git commit -q -m first\n"
      "git checkout -q -b other && echo 2 > f && git commit -q -a -m second && git gc -q\n"
      "cd .. && git clone -q one two 2>/dev/null && git -C two log --format=%s",
      "second\nfirst\n");
}

TEST_CASE("python runs threads, processes, pools and event loops") {
  works(R"(cat > main.py <<'END'
import asyncio, multiprocessing, subprocess, threading
def double(n): return 2 * n
async def main():
    child = await asyncio.create_subprocess_exec('/bin/echo', 'child', stdout=asyncio.subprocess.PIPE)
    return (await child.communicate())[0]
if __name__ == '__main__':
    thread = threading.Thread(target=print, args=('thread',))
    thread.start(); thread.join()
    print(subprocess.run(['/bin/echo', 'process'], capture_output=True, text=True).stdout, end='')
    with multiprocessing.Pool(2) as pool: print(pool.map(double, range(4)))
    print(asyncio.run(main()))
END
/usr/bin/python3 main.py)",
        "thread\nprocess\n[0, 2, 4, 6]\nb'child\\n'\n");
}

TEST_CASE("perl, awk, tar and sort do their work") {
  works(
      "perl -e 'open(my $in, \"-|\", \"seq\", 3); print sort { $b <=> $a } <$in>'\n"
      "seq 3 > numbers && tar -czf n.tgz numbers && tar -xzOf n.tgz | awk '{ s += $1 } END { print s }'",
      "3\n2\n1\n6\n");
}

TEST_CASE("node runs workers and children, npm installs from a folder") {
  if (isHere("node")) {
    works(R"(cat > main.mjs <<'END'
import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { Worker, isMainThread } from 'node:worker_threads';
if (isMainThread) {
  console.log(execFileSync('/bin/echo', ['child']).toString().trim(), (await readFile('main.mjs')).length > 0);
  new Worker(new URL(import.meta.url)).on('exit', () => console.log('worker ended'));
}
END
node main.mjs)",
          "child true\nworker ended\n");
  }
  if (isHere("npm")) {
    works(
        "mkdir dependency main && cd dependency && echo 'module.exports = \"installed\"' > index.js\n"
        "echo '{\"name\":\"dependency\",\"version\":\"1.0.0\"}' > package.json && cd ../main\n"
        "echo '{\"name\":\"main\",\"version\":\"1.0.0\"}' > package.json\n"
        "npm install --offline --no-audit --no-fund ../dependency >/dev/null\n"
        "node -p 'require(\"dependency\")'",
        "installed\n");
  }
}

TEST_CASE("cargo and go build a program") {
  if (isHere("cargo")) {
    works("cargo init -q --vcs none --name main . && cargo run -q --offline", "Hello, world!\n");
  }
  if (isHere("go")) {
    works(
        "printf 'package main\\nfunc main() { println(\"go\") }\\n' > main.go\n"
        "HOME=$PWD GOFLAGS=-mod=mod go run main.go 2>&1",
        "go\n");
  }
}

TEST_CASE("debuggers are refused in words") {
  SidecarOptions options;
  options.startAs = startModes().front();
  Sidecar sidecar(std::move(options));
  Session session(sidecar);
  if (isHere("gdb")) {
    const auto gdb = session.sh("gdb -nx -batch -ex run /bin/true 2>&1");
    CAPTURE(gdb.out);
    CHECK(gdb.out.find("Operation not permitted") != std::string::npos);
  }
  if (isHere("strace")) {
    const auto strace = session.sh("strace /bin/true 2>&1");
    CAPTURE(strace.out);
    CHECK(strace.exitCode != 0);
    CHECK(strace.out.find("Operation not permitted") != std::string::npos);
  }
  const auto mount = session.sh("mount -t tmpfs none /tmp 2>&1");
  CHECK(mount.exitCode != 0);
  const auto dmesg = session.sh("dmesg 2>&1");
  CHECK(dmesg.out.find("Operation not permitted") != std::string::npos);
}

}  // namespace
}  // namespace stitchkit::testing
