#include "codingtools/regular_file.h"

#include "tests/codingtools/test_files.h"

#include <sys/socket.h>

#include <atomic>
#include <thread>

using namespace stitchkit;
using namespace stitchkit::test;

namespace {
UniqueFd openFile(const std::string& path, int flags) {
  return UniqueFd(::open(path.c_str(), flags | O_CLOEXEC, 0644));
}
}  // namespace

TEST_CASE("a descriptor's offset and append mode do not matter") {
  const TemporaryDirectory directory;
  writeText(directory / "f", "0123456789");
  const UniqueFd file = openFile(directory / "f", O_RDWR | O_APPEND);
  ::lseek(file.get(), 5, SEEK_SET);
  CHECK(readRegular(file.get(), 100).value() == "0123456789");
  requireOk(overwriteRegular(file.get(), "new"));
  CHECK(readText(directory / "f") == "new");
}

TEST_CASE("the limit is exact, and a file that claims a tebibyte costs nothing") {
  const TemporaryDirectory directory;
  writeText(directory / "f", std::string(1000, 'x'));
  const UniqueFd file = openFile(directory / "f", O_RDONLY);
  CHECK(readRegular(file.get(), 1000).value().size() == 1000);
  const Result<std::string> over = readRegular(file.get(), 999);
  REQUIRE(over.has_error());
  CHECK(over.error().kind == ErrorKind::kLimit);
  CHECK(numberOf(over.error(), "bytes") == 1000);
  CHECK(numberOf(over.error(), "limit") == 999);

  const UniqueFd sparse = openFile(directory / "sparse", O_RDWR | O_CREAT);
  REQUIRE(::ftruncate(sparse.get(), 1LL << 40) == 0);
  CHECK(numberOf(readRegular(sparse.get(), 1 << 20).error(), "bytes") == 1LL << 40);
}

TEST_CASE("a file that grows while it is read stays within the limit") {
  const TemporaryDirectory directory;
  const UniqueFd writer = openFile(directory / "f", O_WRONLY | O_CREAT | O_APPEND);
  const UniqueFd reader = openFile(directory / "f", O_RDONLY);
  std::atomic<bool> done{false};
  std::thread growing([&] {
    const std::string block(8192, 'x');
    for (int count = 0; count < 2000; ++count) {
      static_cast<void>(writeAll(writer.get(), block));
    }
    done = true;
  });
  while (!done) {
    const Result<std::string> content = readRegular(reader.get(), 1 << 20);
    if (content) {
      CHECK(content->size() <= 1U << 20U);
    } else {
      CHECK(content.error().kind == ErrorKind::kLimit);
    }
  }
  growing.join();
}

TEST_CASE("what is no regular file is refused through descriptors too") {
  const TemporaryDirectory directory;
  REQUIRE(::mkfifo((directory / "fifo").c_str(), 0600) == 0);
  const UniqueFd fifo = openFile(directory / "fifo", O_RDWR);
  int pair[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
  const UniqueFd left(pair[0]);
  const UniqueFd right(pair[1]);
  const UniqueFd null = openFile("/dev/null", O_RDWR);
  const UniqueFd proc = openFile("/proc/self/status", O_RDONLY);
  for (const UniqueFd* fd : {&fifo, &left, &null, &proc}) {
    requirePathError(readRegular(fd->get(), 10), "ENXIO");
    requirePathError(overwriteRegular(fd->get(), "x"), "ENXIO");
  }
  requirePathError(readRegular(openFile(directory.path(), O_RDONLY).get(), 10), "EISDIR");
}
