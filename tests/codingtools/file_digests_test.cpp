#include "codingtools/file_digests.h"

#include "tests/codingtools/test_files.h"

#include <sys/mman.h>

#include <fstream>
#include <thread>

using namespace stitchkit;
using namespace stitchkit::test;

namespace {

constexpr const char* kEmpty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Bytes that this process has read so far.
std::uint64_t bytesRead() {
  std::ifstream io("/proc/self/io");
  std::string name;
  std::uint64_t value = 0;
  io >> name >> value;
  return value;
}

std::string digest(FileDigests& digests, const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return digests.of(file.get(), {}).value().value();
}

}  // namespace

TEST_CASE("digests are of the whole file and follow its changes") {
  const Workspace workspace;
  FileDigests digests;
  const std::string path = workspace / "f";
  writeText(path, "");
  CHECK(digest(digests, path) == kEmpty);
  std::string last;
  for (int round = 0; round < 5; ++round) {
    writeText(path, std::string(200000, static_cast<char>('a' + round)));
    const std::string now = digest(digests, path);
    CHECK(now != last);
    CHECK(now == digest(digests, path));
    last = now;
  }
}

TEST_CASE("a file too large to wait for has no digest, at once") {
  const UniqueFd big(::memfd_create("big", MFD_CLOEXEC));
  REQUIRE(::ftruncate(big.get(), off_t{1} << 40) == 0);
  FileDigests digests;
  CHECK_FALSE(digests.of(big.get(), {}).value().has_value());
}

TEST_CASE("digesting can be told to stop") {
  const UniqueFd file(::memfd_create("file", MFD_CLOEXEC));
  REQUIRE(::ftruncate(file.get(), 1 << 20) == 0);
  std::stop_source source;
  source.request_stop();
  FileDigests digests;
  CHECK(digests.of(file.get(), source.get_token()).error().kind == ErrorKind::kCancelled);
}

TEST_CASE("a large file that is left alone is read once") {
  const Workspace workspace;
  FileDigests digests;
  const std::string path = workspace / "f";
  writeText(path, std::string(10 << 20, 'x'));
  // Its times have to be older than what the clock of the file system can tell apart.
  for (struct stat status{}; ::stat(path.c_str(), &status) == 0 && status.st_ctime + 2 > ::time(nullptr);) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  const std::string first = digest(digests, path);
  const std::uint64_t before = bytesRead();
  CHECK(digest(digests, path) == first);
  CHECK(bytesRead() - before < (1 << 20));
  writeText(path, std::string(10 << 20, 'y'));
  CHECK(digest(digests, path) != first);
}
