#include "codingtools/copy_tree.h"

#include "tests/codingtools/test_files.h"

#include <sys/resource.h>

using namespace stitchkit;
using namespace stitchkit::test;

namespace {

Result<void> copy(const std::string& from, const std::string& to, const std::stop_token& stop = {}) {
  return copyTree(ContainedDirectory::open(from).value().descriptor(),
                  ContainedDirectory::open(to).value().descriptor(), stop);
}

}  // namespace

TEST_CASE("a copy has the same names, bytes and modes") {
  const Workspace workspace;
  const std::string big(300001, 'b');
  std::filesystem::create_directories(workspace / "d/empty");
  writeText(workspace / "d/small", "x", 0600);
  writeText(workspace / "d/big", big, 0755);
  writeText(workspace / "none", "", 0444);
  std::filesystem::permissions(workspace / "d", std::filesystem::perms(0711));
  std::filesystem::permissions(workspace / "d/empty", std::filesystem::perms(0700));
  const mode_t before = ::umask(0077);
  const Result<void> copied = copy(workspace.path, workspace.outside);
  ::umask(before);
  requireOk(copied);
  CHECK(readText(workspace.outside + "/d/small") == "x");
  CHECK(readText(workspace.outside + "/d/big") == big);
  CHECK(readText(workspace.outside + "/none").empty());
  CHECK(modeOf(workspace.outside + "/d") == 0711);
  CHECK(modeOf(workspace.outside + "/d/empty") == 0700);
  CHECK(modeOf(workspace.outside + "/d/small") == 0600);
  CHECK(modeOf(workspace.outside + "/d/big") == 0755);
  CHECK(modeOf(workspace.outside + "/none") == 0444);
}

TEST_CASE("a copy crosses file systems and depth with few descriptors") {
  const Workspace workspace;
  std::string deep = workspace.path;
  for (int level = 0; level < 500; ++level) {
    deep += "/deep";
    REQUIRE(::mkdir(deep.c_str(), 0700) == 0);
  }
  writeText(deep + "/f", std::string(200000, 'x'));
  char shared[] = "/dev/shm/sandbox-test-XXXXXX";
  REQUIRE(::mkdtemp(shared) != nullptr);
  const int code = inChild([&] {
    const rlimit files{16, 16};
    ::setrlimit(RLIMIT_NOFILE, &files);
    return copy(workspace.path, shared) ? 0 : 1;
  });
  const std::string copied = readText(shared + deep.substr(workspace.path.size()) + "/f");
  requireOk(removeEntry(AT_FDCWD, shared));
  CHECK(code == 0);
  CHECK(copied.size() == 200000);
}

TEST_CASE("what a template cannot hold is not copied") {
  const Workspace workspace;
  std::filesystem::create_symlink("/etc/passwd", workspace / "link");
  const Result<void> copied = copy(workspace.path, workspace.outside);
  REQUIRE(copied.has_error());
  CHECK(copied.error().kind == ErrorKind::kInternal);
  CHECK_FALSE(exists(workspace.outside + "/link"));
}

TEST_CASE("copying can be cancelled") {
  const Workspace workspace;
  writeText(workspace / "f", "x");
  std::stop_source source;
  source.request_stop();
  CHECK(copy(workspace.path, workspace.outside, source.get_token()).error().kind == ErrorKind::kCancelled);
}
