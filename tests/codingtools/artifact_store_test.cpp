#include "codingtools/artifact_store.h"

#include "tests/codingtools/test_files.h"

#include <sys/wait.h>

#include <set>
#include <thread>

using namespace stitchkit;
using namespace stitchkit::test;

namespace {

constexpr const char* kRequest = R"({"operation":"shell","executable":"sh"})";

struct Session {
  TemporaryDirectory directory;
  TemporaryDirectory aside;
  UniqueFd fd{::open((directory / "").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  StagingDirectory staging{UniqueFd(::open((aside / "").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC))};
  ArtifactStore store{fd.get(), staging};

  [[nodiscard]] std::string content(const std::string& reference) const {
    const OpenedArtifact opened = store.open(reference).value();
    std::string bytes(opened.bytes, '\0');
    REQUIRE(::pread(opened.fd.get(), bytes.data(), bytes.size(), opened.begin) == static_cast<ssize_t>(bytes.size()));
    return bytes;
  }
};

}  // namespace

TEST_CASE("artifacts are kept with what made them, and outlive the store") {
  Session session;
  const std::string bytes("a\n\0\xFF b", 6);
  CHECK(session.store.write(bytes, kRequest).value() == "artifact-1");
  CHECK(session.store.write("", "null").value() == "artifact-2");
  const ArtifactStore later(session.fd.get(), session.staging);
  CHECK(later.open("artifact-1")->request == kRequest);
  CHECK(later.open("artifact-2")->request == "null");
  CHECK(session.content("artifact-1") == bytes);
  CHECK(session.content("artifact-2").empty());
  CHECK(modeOf(session.directory / "artifacts") == 0700);
}

TEST_CASE("what is no artifact's name is unknown") {
  Session session;
  CHECK(session.store.open("artifact-1").error().kind == ErrorKind::kSpillReferenceUnknown);
  REQUIRE(session.store.write("x", kRequest).has_value());
  for (const char* reference :
       {"", "artifact-", "artifact-0", "artifact-01", "artifact-2", "artifact-+1", "1", "artifact-1/../1",
        "artifact-latest", "../state.json", "artifact-99999999999999999999"}) {
    CAPTURE(reference);
    const Result<OpenedArtifact> opened = session.store.open(reference);
    REQUIRE_FALSE(opened.has_value());
    CHECK(opened.error().kind == ErrorKind::kSpillReferenceUnknown);
    CHECK(std::get<std::string>(opened.error().details.front().second) == reference);
  }
}

TEST_CASE("the oldest make room, and no name is used twice") {
  Session session;
  const std::string large(ArtifactStore::kMaxTotalBytes / 4, 'x');
  for (int number = 1; number <= 6; ++number) {
    CHECK(session.store.write(large, kRequest).value() == "artifact-" + std::to_string(number));
  }
  CHECK_FALSE(session.store.open("artifact-3").has_value());
  CHECK(session.content("artifact-4") == large);
  CHECK(session.content("artifact-6") == large);
  const std::string whole(ArtifactStore::kMaxTotalBytes - 100, 'y');
  CHECK(session.store.write(whole, "{}").value() == "artifact-7");
  CHECK_FALSE(session.store.open("artifact-6").has_value());
  CHECK(ArtifactStore(session.fd.get(), session.staging).write(whole, "{}").value() == "artifact-8");
  CHECK(session.store.write(std::string(ArtifactStore::kMaxTotalBytes, 'y'), "{}").error().kind == ErrorKind::kLimit);
}

TEST_CASE("a writer that is killed leaves whole artifacts only, and the next one goes on") {
  Session session;
  // Staging directories are swept when their owner is dead.
  const auto sweep = [&] {
    requireOk(removeEntriesOf(UniqueFd(::open((session.aside / "").c_str(), O_PATH | O_CLOEXEC)).get()));
  };
  for (int round = 0; round < 30; ++round) {
    sweep();
    const pid_t writer = ::fork();
    REQUIRE(writer >= 0);
    if (writer == 0) {
      for (;;) {
        static_cast<void>(session.store.write(std::string(300000, 'k'), kRequest));
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(500 + 300 * round));  // a moment of any kind will do
    ::kill(writer, SIGKILL);
    ::waitpid(writer, nullptr, 0);
  }
  sweep();
  const Result<std::string> after = session.store.write("after", kRequest);
  requireOk(after);
  const std::string& reference = *after;
  CHECK(session.content(reference) == "after");
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(session.directory / "artifacts")) {
    const std::string name = entry.path().filename();
    names.insert(name);
    if (name != "latest" && "artifact-" + name != reference) {
      CHECK(session.content("artifact-" + name) == std::string(300000, 'k'));
    }
  }
  CHECK(names.count("unfinished") == 0);
  CHECK(names.size() > 1);
}
