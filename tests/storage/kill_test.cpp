// SIGKILL at any moment: what is left is whole, or goes with the next sweep.
#include "tests/storage/test_storage.h"

#include <csignal>
#include <ctime>
#include <random>

using namespace stitchkit;
using namespace stitchkit::test;

namespace {

std::vector<TemplateFile> manyFiles(int variant) {
  std::vector<TemplateFile> files;
  for (int index = 0; index < 30; ++index) {
    files.push_back({"d" + std::to_string(index % 5) + "/f" + std::to_string(index), std::to_string(variant)});
  }
  return files;
}

/// Prewarms, creates, writes and deletes until it is killed.
[[noreturn]] void workForever(const Layout& layout) {
  const TemplateStore templates(layout);
  const SessionStore sessions(layout);
  for (int round = 0;; ++round) {
    const std::string key = templates.prewarm("t", manyFiles(round % 20)).value().templateKey;
    StoredSession session = sessions.create(key).value();
    session.publish().value();
    session.workspace().replaceFile(at("x/y"), "x", ContainedDirectory::Parents::kCreate, session.staging()).value();
    if (round % 3 != 0) {
      sessions.remove(session.state().sessionId, &session).value();
    }
  }
}

void requireWhole(const StateDirectory& directory) {
  const TemplateStore templates(directory.layout());
  const SessionStore sessions(directory.layout());
  for (const std::string& key : StateDirectory::listed(directory.area("templates"))) {
    REQUIRE(templates.open(key).has_value());
    const auto data = std::filesystem::recursive_directory_iterator(directory.templatePath(key) + "/data");
    REQUIRE(std::distance(data, {}) == 35);
  }
  for (const std::string& id : StateDirectory::listed(directory.area("sessions"))) {
    const std::string text = readText(directory.sessionPath(id) + "/state.json");
    const std::string key = text.substr(text.rfind(':') + 2, 64);
    const SessionState state{"bubblewrap", id, key};
    {
      const Result<StoredSession> session = sessions.attach(key, state);
      requireOk(session);
      REQUIRE(readText(directory.sessionPath(id) + "/workspace/d0/f0").size() > 0);
    }
    requireOk(sessions.remove(id, nullptr));
  }
}

}  // namespace

TEST_CASE("a kill at any moment leaves only whole templates and sessions") {
  const StateDirectory directory;
  std::mt19937 random(12345);
  for (int round = 0; round < 200; ++round) {
    const pid_t child = startChild([&]() -> int { workForever(directory.layout()); });
    const timespec moment{0, static_cast<long>(random() % 12000000)};
    ::nanosleep(&moment, nullptr);
    ::kill(child, SIGKILL);
    REQUIRE(waitFor(child) == 128 + SIGKILL);
    sweepStaging(directory.layout());
    INFO(round);
    REQUIRE(directory.stagingIsEmpty());
    requireWhole(directory);
    if (round % 10 == 0) {
      requireOk(removeEntry(AT_FDCWD, directory.area("templates").c_str()));
    }
  }
}
