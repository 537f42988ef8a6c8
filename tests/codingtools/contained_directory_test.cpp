#include "codingtools/contained_directory.h"

#include "codingtools/file_error.h"
#include "tests/codingtools/test_files.h"

#include <linux/openat2.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

using namespace stitchkit;
using namespace stitchkit::test;
using Parents = ContainedDirectory::Parents;

namespace {

constexpr std::size_t kMax = 1 << 20;

Result<ReplacedFile> write(const Workspace& workspace, const std::string& path, const std::string& bytes,
                           Parents parents = Parents::kCreate) {
  StagingDirectory staging = workspace.staging();
  return workspace.open().replaceFile(at(path), bytes, parents, staging);
}

void makeSocket(const std::string& path) {
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(path.size() < sizeof address.sun_path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
}

/// Whether the file system can read without waiting at all; tmpfs cannot.
bool knowsNoWait(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char byte = 0;
  const iovec part{&byte, 1};
  return ::preadv2(file.get(), &part, 1, 0, RWF_NOWAIT) == 1;
}

bool stagingIsEmpty(const Workspace& workspace) {
  return std::filesystem::is_empty(workspace.stagingPath);
}

}  // namespace

TEST_CASE("openat2 answers as the test run says") {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  const long fd = ::syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof how);
  const int error = errno;
  const UniqueFd owned(static_cast<int>(fd));
  const char* const expected = std::getenv("SANDBOX_TEST_OPENAT2");
  if (expected != nullptr) {
    REQUIRE(fd == -1);
    CHECK(errnoName(error) == expected);
  }
}

TEST_CASE("files are read whole") {
  const Workspace workspace;
  std::filesystem::create_directories(workspace / "a/b");
  writeText(workspace / "a/b/c", std::string("x\0y", 3));
  writeText(workspace / "empty", "");
  const ContainedDirectory directory = workspace.open();
  CHECK(directory.readFile(at("a/b/c"), kMax).value() == std::string("x\0y", 3));
  CHECK(directory.readFile(at("/workspace/empty"), kMax).value().empty());
  CHECK(directory.readFile(at("empty"), 0).value().empty());
  CHECK(directory.readFile(at("a/b/c"), 2).error().kind == ErrorKind::kLimit);
}

TEST_CASE("what is in memory is read without waiting, and nothing else is") {
  const Workspace workspace;
  std::filesystem::create_directories(workspace / "d");
  writeText(workspace / "d/f", std::string("x\0y", 3));
  writeText(workspace / "empty", "");
  std::filesystem::create_symlink("d/f", workspace / "link");
  std::filesystem::create_symlink("d", workspace / "linked");
  REQUIRE(::mkfifo((workspace / "fifo").c_str(), 0600) == 0);
  const ContainedDirectory directory = workspace.open();
  REQUIRE(directory.readFile(at("d/f"), kMax).has_value());
  const bool possible = std::getenv("SANDBOX_TEST_OPENAT2") == nullptr && knowsNoWait(workspace / "d/f");
  CHECK(directory.readCachedFile(at("d/f"), 3) == (possible ? std::optional(std::string("x\0y", 3)) : std::nullopt));
  CHECK(directory.readCachedFile(at("empty"), 0) == (possible ? std::optional(std::string()) : std::nullopt));
  CHECK_FALSE(directory.readCachedFile(at("d/f"), 2));
  for (const char* path : {"missing", "d/missing", "d/f/below", "d", "link", "linked/f", "fifo", "/workspace"}) {
    CAPTURE(path);
    CHECK_FALSE(directory.readCachedFile(at(path), kMax));
  }
}

TEST_CASE("a file that was prepared is the next one that is written") {
  const Workspace workspace;
  StagingDirectory staging = workspace.staging();
  const ContainedDirectory directory = workspace.open();
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, std::size_t{100000}}) {
    CAPTURE(size);
    staging.prepare();
    staging.prepare();
    CHECK(std::distance(std::filesystem::directory_iterator(workspace.stagingPath), {}) == 1);
    const std::string content(size, 'x');
    ReplacedFile replaced = directory.replaceFile(at("f"), content, Parents::kCreate, staging).value();
    CHECK(stagingIsEmpty(workspace));
    replaced.settle();
    replaced.settle();
    CHECK(readText(workspace / "f") == content);
    struct stat status {};
    REQUIRE(::stat((workspace / "f").c_str(), &status) == 0);
    CHECK((status.st_mode & 07777U) == 0644U);
    CHECK((size > 0 || status.st_blocks == 0));
  }
  staging.prepare();
  std::filesystem::remove(std::filesystem::directory_iterator(workspace.stagingPath)->path());
  CHECK(directory.replaceFile(at("f"), "the prepared one had gone", Parents::kCreate, staging).has_value());
  CHECK(readText(workspace / "f") == "the prepared one had gone");
}

TEST_CASE("reading refuses what is no file, in words and without waiting") {
  const Workspace workspace;
  const ContainedDirectory directory = workspace.open();
  writeText(workspace / "file", "x");
  std::filesystem::create_directory(workspace / "dir");
  REQUIRE(::mkfifo((workspace / "fifo").c_str(), 0600) == 0);
  makeSocket(workspace / "socket");
  requirePathError(directory.readFile(at("."), kMax), "EISDIR");
  requirePathError(directory.readFile(at("dir"), kMax), "EISDIR");
  requirePathError(directory.readFile(at("none"), kMax), "ENOENT");
  requirePathError(directory.readFile(at("none/none"), kMax), "ENOENT");
  requirePathError(directory.readFile(at("file/x"), kMax), "ENOTDIR");
  requirePathError(directory.readFile(at("fifo"), kMax), "ENXIO");
  requirePathError(directory.readFile(at("socket"), kMax), "ENXIO");
  requirePathError(directory.readFile(at(std::string(256, 'a')), kMax), "ENAMETOOLONG");
  if (::mknod((workspace / "device").c_str(), S_IFCHR | 0600, makedev(1, 5)) == 0) {
    const Result<std::string> device = directory.readFile(at("device"), kMax);
    REQUIRE(device.has_error());
    CHECK(device.error().kind == ErrorKind::kPath);
  }
}

TEST_CASE("links are reported as such at every segment, and nothing is done") {
  const Workspace workspace;
  const ContainedDirectory directory = workspace.open();
  std::filesystem::create_directory(workspace / "dir");
  writeText(workspace / "dir/file", "inside");
  writeText(workspace.outside + "/file", "outside");
  std::filesystem::create_symlink("dir/file", workspace / "toFile");
  std::filesystem::create_symlink("dir", workspace / "toDir");
  std::filesystem::create_symlink(workspace.outside, workspace / "toOutside");
  std::filesystem::create_symlink("nowhere", workspace / "dangling");
  std::filesystem::create_symlink("loop", workspace / "loop");
  for (const char* const path : {"toFile", "toDir/file", "toDir", "toOutside/file", "dangling", "loop", "toDir/none"}) {
    INFO(path);
    const Result<std::string> read = directory.readFile(at(path), kMax);
    requirePathError(read, "ELOOP");
    CHECK(isSymlink(read.error()));
    const Result<ReplacedFile> written = write(workspace, path, "changed");
    REQUIRE(written.has_error());
    CHECK(isSymlink(written.error()));
  }
  CHECK(isSymlink(write(workspace, "toOutside/new/deep", "x").error()));
  CHECK(isSymlink(directory.removeTree(at("toOutside/file")).error()));
  CHECK(readText(workspace / "dir/file") == "inside");
  CHECK(readText(workspace.outside + "/file") == "outside");
  CHECK_FALSE(exists(workspace.outside + "/new"));
  CHECK(stagingIsEmpty(workspace));
}

TEST_CASE("writing makes files and directories with fixed modes whatever the umask") {
  const Workspace workspace;
  const mode_t before = ::umask(0077);
  const Result<ReplacedFile> written = write(workspace, "a/b/c.txt", "x");
  ::umask(before);
  requireOk(written);
  CHECK(modeOf(workspace / "a") == 0755);
  CHECK(modeOf(workspace / "a/b") == 0755);
  CHECK(modeOf(workspace / "a/b/c.txt") == 0644);
  CHECK(readText(workspace / "a/b/c.txt") == "x");
  CHECK(stagingIsEmpty(workspace));
  CHECK(inChild([&] {
          ::umask(0777);
          return write(workspace, "u/v/w", "x") && modeOf(workspace / "u/v") == 0755 ? 0 : 1;
        }) == 0);
}

TEST_CASE("overwriting keeps the mode, drops set-user-id and breaks hard links") {
  const Workspace workspace;
  writeText(workspace / "a.sh", "old", 0755);
  writeText(workspace / "suid", "old", 04755);
  std::filesystem::create_hard_link(workspace / "a.sh", workspace / "other");
  requireOk(write(workspace, "a.sh", "new"));
  requireOk(write(workspace, "suid", "new"));
  CHECK(modeOf(workspace / "a.sh") == 0755);
  CHECK(modeOf(workspace / "suid") == 0755);
  CHECK(readText(workspace / "a.sh") == "new");
  CHECK(readText(workspace / "other") == "old");
}

TEST_CASE("writing refuses what cannot be a file") {
  const Workspace workspace;
  writeText(workspace / "file", "x");
  std::filesystem::create_directory(workspace / "dir");
  REQUIRE(::mkfifo((workspace / "fifo").c_str(), 0600) == 0);
  const UniqueFd reader(::open((workspace / "fifo").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  makeSocket(workspace / "socket");
  requirePathError(write(workspace, ".", "y"), "EISDIR");
  requirePathError(write(workspace, "dir", "y"), "EISDIR");
  requirePathError(write(workspace, "file/x", "y"), "ENOTDIR");
  requirePathError(write(workspace, "file/x/y", "y"), "ENOTDIR");
  requirePathError(write(workspace, "fifo", "y"), "ENXIO");
  requirePathError(write(workspace, "socket", "y"), "ENXIO");
  requirePathError(write(workspace, "new/file", "y", Parents::kMustExist), "ENOENT");
  requirePathError(write(workspace, std::string(256, 'a'), "y"), "ENAMETOOLONG");
  requirePathError(write(workspace, "d/" + std::string(256, 'a') + "/f", "y"), "ENAMETOOLONG");
  CHECK_FALSE(exists(workspace / "new"));
  CHECK_FALSE(exists(workspace / "d"));
  CHECK(stagingIsEmpty(workspace));
}

TEST_CASE("permission bits bind as they bind a guest") {
  const Workspace workspace;
  for (const std::string& path : {workspace.base.path(), workspace.path, workspace.stagingPath}) {
    handOver(path);
  }
  const int code = asOrdinaryUser([&] {
    writeText(workspace / "secret", "x", 0000);
    writeText(workspace / "readonly", "x", 0444);
    std::filesystem::create_directory(workspace / "locked");
    writeText(workspace / "locked/open", "x", 0644);
    std::filesystem::permissions(workspace / "locked", std::filesystem::perms(0555));
    requirePathError(workspace.open().readFile(at("secret"), kMax), "EACCES");
    requirePathError(write(workspace, "readonly", "y"), "EACCES");
    requirePathError(write(workspace, "locked/new", "y"), "EACCES");
    // A guest may write the file though nobody may replace it.
    requireOk(write(workspace, "locked/open", "changed"));
    CHECK(readText(workspace / "locked/open") == "changed");
    requirePathError(workspace.open().removeTree(at("locked/open")), "EACCES");
    std::filesystem::permissions(workspace / "locked", std::filesystem::perms(0000));
    requirePathError(workspace.open().readFile(at("locked/open"), kMax), "EACCES");
    requireOk(workspace.open().removeTree(at("locked")));
    return exists(workspace / "locked") || !stagingIsEmpty(workspace) ? 1 : 0;
  });
  CHECK(code == 0);
}

TEST_CASE("a running program is busy") {
  const Workspace workspace;
  std::filesystem::copy_file("/bin/sleep", workspace / "program");
  const pid_t child = startChild([&] {
    ::execl((workspace / "program").c_str(), "program", "60", nullptr);
    return 1;
  });
  const std::string link = "/proc/" + std::to_string(child) + "/exe";
  while (std::filesystem::read_symlink(link) != workspace / "program") {
    std::this_thread::yield();
  }
  const Result<ReplacedFile> written = write(workspace, "program", "x");
  ::kill(child, SIGKILL);
  waitFor(child);
  requirePathError(written, "ETXTBSY");
}

TEST_CASE("a lease that a guest holds on its file does not hold us") {
  const Workspace workspace;
  writeText(workspace / "leased", "x");
  int ready[2];
  REQUIRE(::pipe2(ready, O_CLOEXEC) == 0);
  const pid_t guest = startChild([&] {
    ::signal(SIGIO, SIG_IGN);
    const int file = ::open((workspace / "leased").c_str(), O_RDWR | O_CLOEXEC);
    const char answer = ::fcntl(file, F_SETLEASE, F_WRLCK) == 0 ? 'y' : 'n';
    static_cast<void>(!::write(ready[1], &answer, 1));
    for (;;) {
      ::pause();
    }
    return 0;
  });
  char answer = 0;
  REQUIRE(::read(ready[0], &answer, 1) == 1);
  REQUIRE(answer == 'y');
  const auto begin = std::chrono::steady_clock::now();
  const Result<std::string> read = workspace.open().readFile(at("leased"), kMax);
  const Result<ReplacedFile> written = write(workspace, "leased", "y");
  const auto took = std::chrono::steady_clock::now() - begin;
  ::kill(guest, SIGKILL);
  waitFor(guest);
  ::close(ready[0]);
  ::close(ready[1]);
  requirePathError(read, "EAGAIN");
  requirePathError(written, "EAGAIN");
  CHECK(took < std::chrono::seconds(15));
}

TEST_CASE("a full disk is a limit, and leaves the old content") {
  const Workspace workspace;
  const int code = inChild([&] {
    if (!mountTmpfs(workspace.base.path(), "size=256k")) {
      return 77;
    }
    std::filesystem::create_directory(workspace.path);
    std::filesystem::create_directory(workspace.stagingPath);
    writeText(workspace / "f", "old");
    const Result<ReplacedFile> written = write(workspace, "f", std::string(kMax, 'x'));
    if (!written.has_error() || written.error().kind != ErrorKind::kLimit || written.error().reason != "storage" ||
        errnoOf(written.error()) != "ENOSPC") {
      return 1;
    }
    return readText(workspace / "f") == "old" && stagingIsEmpty(workspace) && write(workspace, "f", "new") ? 0 : 2;
  });
  CHECK(code == 0);  // 77: no mount namespaces here
}

TEST_CASE("readers see the old or the new content, never a part") {
  const Workspace workspace;
  const std::string first(100000, 'a');
  const std::string second(50000, 'b');
  requireOk(write(workspace, "f", first));
  std::atomic<bool> done{false};
  std::thread writer([&] {
    const ContainedDirectory directory = workspace.open();
    StagingDirectory staging = workspace.staging();
    for (int round = 0; round < 300; ++round) {
      static_cast<void>(directory.replaceFile(at("f"), round % 2 == 0 ? second : first, Parents::kCreate, staging));
    }
    done = true;
  });
  const ContainedDirectory directory = workspace.open();
  bool whole = true;
  while (!done) {
    const Result<std::string> content = directory.readFile(at("f"), kMax);
    whole = whole && content && (*content == first || *content == second);
  }
  writer.join();
  CHECK(whole);
}
