#include "backend/storage/template_store.h"

#include "tests/storage/test_storage.h"

#include <thread>

using namespace stitchkit;
using namespace stitchkit::test;

TEST_CASE("a template is made once, with private modes and an exact marker") {
  const StateDirectory state;
  const TemplateStore store(state.layout());
  const auto first = store.prewarm("t", kFiles).value();
  CHECK_FALSE(first.reused);
  CHECK(store.prewarm("t", kFiles).value().reused);
  const std::string place = state.templatePath(first.templateKey);
  CHECK(readText(place + "/ready") == R"({"backend":"bubblewrap","templateKey":")" + first.templateKey + "\"}");
  CHECK(readText(place + "/data/d/b.bin") == std::string("\0\1\2\377", 4));
  CHECK(modeOf(place + "/data") == 0700);
  CHECK(modeOf(place + "/data/d") == 0700);
  CHECK(modeOf(place + "/data/d/b.bin") == 0600);
  CHECK(state.stagingIsEmpty());
  CHECK(store.open(first.templateKey).has_value());
  for (const std::string& key : {std::string(64, 'a'), std::string("../x"), std::string()}) {
    CHECK(store.open(key).error().kind == ErrorKind::kStateMismatch);
  }
}

TEST_CASE("a template that is not whole is made anew") {
  const StateDirectory state;
  const TemplateStore store(state.layout());
  const std::string key = store.prewarm("t", kFiles).value().templateKey;
  const std::string place = state.templatePath(key);
  const auto damage = GENERATE(0, 1, 2, 3, 4, 5, 6);
  INFO(damage);
  switch (damage) {
    case 0:
      writeText(place + "/ready", "{");
      break;
    case 1:
      std::filesystem::remove(place + "/ready");
      break;
    case 2:
      std::filesystem::remove_all(place + "/data");
      break;
    case 3:
      writeText(place + "/ready", R"({"backend":"other","templateKey":")" + key + "\"}");
      break;
    case 4:
      std::filesystem::remove_all(place);
      std::filesystem::create_symlink("/etc", place);
      break;
    case 5:
      std::filesystem::remove_all(place);
      writeText(place, "a file");
      break;
    default:
      std::filesystem::remove_all(place + "/data");
      std::filesystem::create_symlink("/etc", place + "/data");
  }
  CHECK(store.open(key).error().kind == ErrorKind::kStateMismatch);
  const auto again = store.prewarm("t", kFiles).value();
  CHECK_FALSE(again.reused);
  CHECK(readText(place + "/data/a.txt") == "hello");
  CHECK(store.prewarm("t", kFiles).value().reused);
  CHECK(state.stagingIsEmpty());
}

TEST_CASE("many prewarms at once give one template") {
  const StateDirectory state;
  std::atomic<int> made{0};
  std::atomic<int> failed{0};
  {
    std::vector<std::jthread> threads;
    for (int index = 0; index < 8; ++index) {
      threads.emplace_back([&] {
        const auto prewarmed = TemplateStore(state.layout()).prewarm("t", kFiles);
        failed += prewarmed ? 0 : 1;
        made += prewarmed && !prewarmed->reused ? 1 : 0;
      });
    }
  }
  CHECK(made == 1);
  CHECK(failed == 0);
  CHECK(state.stagingIsEmpty());
}

TEST_CASE("a cancelled prewarm leaves nothing") {
  const StateDirectory state;
  std::stop_source source;
  source.request_stop();
  CHECK(TemplateStore(state.layout()).prewarm("t", kFiles, source.get_token()).error().kind == ErrorKind::kCancelled);
  CHECK(state.stagingIsEmpty());
  CHECK(TemplateStore(state.layout()).prewarm("t", kFiles).has_value());
}

TEST_CASE("a state directory that cannot be used is an error, and the same call works afterwards") {
  const StateDirectory state;
  handOver(state.base.path());
  CHECK(asOrdinaryUser([&] {
          const TemplateStore store(state.layout());
          std::filesystem::permissions(state.base.path(), std::filesystem::perms(0500));
          const auto refused = store.prewarm("t", kFiles);
          std::filesystem::permissions(state.base.path(), std::filesystem::perms(0700));
          if (!refused.has_error() || refused.error().kind != ErrorKind::kInternal ||
              refused.error().message.find('/') != std::string::npos) {
            return 1;
          }
          return store.prewarm("t", kFiles) ? 0 : 2;
        }) == 0);
}

TEST_CASE("a full disk leaves no template, and the same call works afterwards") {
  const StateDirectory state;
  const int code = inChild([&] {
    if (!mountTmpfs(state.base.path(), "size=1m")) {
      return 77;
    }
    const TemplateStore store(state.layout());
    const std::vector<TemplateFile> files{{"big", std::string(800000, 'x')}};
    writeText(state.base / "ballast", std::string(500000, 'x'));
    const auto full = store.prewarm("t", files);
    if (!full.has_error() || full.error().kind != ErrorKind::kLimit || full.error().reason != "storage" ||
        !state.stagingIsEmpty()) {
      return 1;
    }
    std::filesystem::remove(state.base / "ballast");
    return store.prewarm("t", files) ? 0 : 2;
  });
  CHECK(code == 0);  // 77: no mount namespaces here
}
