#include "backend/doctor/report.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace stitchkit {
namespace {

std::vector<Finding> mixed() {
  return {{"one", FindingStatus::kOk, "", "fine", ""},
          {"two", FindingStatus::kWarning, "a-cause", "not \"quite\"", "Do this."},
          {"three", FindingStatus::kFailed, "b-cause", "bwrap: so\nmuch\x1b[31m for \xff\n", "Do that."},
          {"four", FindingStatus::kFailed, "b-cause", "again", "Do that."}};
}

TEST_CASE("a report as text: a line a check, then each advice once, then the verdict", "[report]") {
  CHECK(textReport(mixed()) ==
        "[ok]   one: fine\n"
        "[warn] two: not \"quite\"\n"
        "[FAIL] three: bwrap: so much [31m for \xef\xbf\xbd \n"
        "[FAIL] four: again\n"
        "\nWhat to do:\n"
        "  a-cause: Do this.\n"
        "  b-cause: Do that.\n"
        "\nIsolation does not work here.\n");
  CHECK(textReport({{"one", FindingStatus::kOk, "", "fine", ""}}) == "[ok]   one: fine\n\nIsolation works here.\n");
}

TEST_CASE("a report as JSON", "[report]") {
  const std::string text = jsonReport(mixed());
  CHECK(text.find('\n') == text.size() - 1);
  const auto report = nlohmann::json::parse(text);
  CHECK(report["ok"] == false);
  CHECK(report["version"] == STITCHKIT_VERSION);
  REQUIRE(report["checks"].size() == 4);
  CHECK(report["checks"][0] == nlohmann::json{{"name", "one"}, {"status", "ok"}, {"message", "fine"}});
  CHECK(report["checks"][1] == nlohmann::json{{"name", "two"},
                                              {"status", "warning"},
                                              {"cause", "a-cause"},
                                              {"message", "not \"quite\""},
                                              {"hint", "Do this."}});
  CHECK(report["checks"][2]["status"] == "failed");
}

TEST_CASE("a warning is no failure", "[report]") {
  CHECK(isolationWorks({{"two", FindingStatus::kWarning, "c", "m", "h"}}));
  CHECK(!isolationWorks(mixed()));
}

}  // namespace
}  // namespace stitchkit
