#include "codingtools/host_artifacts.h"

#include "codingtools/text_window.h"
#include "rpc/base/base64.h"
#include "tests/codingtools/answering_host.h"

#include <boost/json/array.hpp>
#include <catch2/catch.hpp>

using namespace stitchkit;
using namespace stitchkit::test;

namespace json = boost::json;

namespace {

/// Keeps one text, and gives what it is asked for or what a test makes of it.
class KeepingHost {
 public:
  explicit KeepingHost(std::string content) : content_(std::move(content)) {}

  const HostArtifacts artifacts() { return HostArtifacts(host_.requests, "t7"); }
  Result<json::value> answer(const std::string& method, const json::object& params) {
    CHECK(params.at("toolset") == "t7");
    if (override_) {
      return *override_;
    }
    if (method == "host.artifacts.read") {
      const auto offset = static_cast<std::size_t>(params.at("offset").to_number<std::int64_t>());
      const auto count = static_cast<std::size_t>(params.at("maxBytes").to_number<std::int64_t>());
      CHECK(count <= std::max<std::size_t>(most_, 3));
      const std::string part =
          offset < content_.size() ? content_.substr(offset, std::min(count, atOnce_)) : std::string();
      return json::value{{"base64", encodeBase64(part)}, {"totalBytes", content_.size()}};
    }
    return json::value{};
  }
  void answersWith(Result<json::value> answer) { override_ = std::move(answer); }
  void givesAtOnce(std::size_t bytes) { atOnce_ = bytes; }
  void expectsAtMost(std::size_t bytes) { most_ = bytes; }

 private:
  std::string content_;
  std::size_t most_ = 1000;
  std::size_t atOnce_ = 1000;
  std::optional<Result<json::value>> override_;
  AnsweringHost host_{[this](const std::string& method, const json::object& params) { return answer(method, params); }};
};

Error hostSaid(const char* code) {
  return Error(ErrorKind::kInternal, "The host refused a request of the sidecar").withReason(code);
}

}  // namespace

TEST_CASE("host artifacts: windows are those of a file, and the host is asked for no more than was allowed") {
  for (const std::string& text :
       {std::string("a\u00e9\u20ac\U0001f600z"), std::string("a\xff\xe2\x82\x80\x80\x80 b")}) {
    KeepingHost host(text);
    const auto part = [&](std::uint64_t offset, std::size_t count) -> Result<std::string> {
      return offset < text.size() ? text.substr(offset, count) : std::string();
    };
    for (std::uint64_t offset = 0; offset < text.size() + 2; ++offset) {
      for (std::size_t maxBytes = 1; maxBytes < text.size() + 2; ++maxBytes) {
        CAPTURE(offset, maxBytes);
        host.expectsAtMost(maxBytes);
        host.givesAtOnce(offset % 2 == 0 ? 1 : 1000);
        const auto window = host.artifacts().read("r", offset, maxBytes, {});
        const auto wanted = textWindow(part, offset, maxBytes, Malformed::kReplaced);
        REQUIRE(window.has_value());
        CHECK(window->text == wanted->text);
        CHECK(window->bytes == wanted->bytes);
        CHECK(window->offset == wanted->end - wanted->bytes);
        CHECK(window->totalBytes == text.size());
      }
    }
  }
}

TEST_CASE("host artifacts: what the host answers is checked") {
  KeepingHost host("x");
  const auto kindOfRead = [&] { return host.artifacts().read("r", 0, 2, {}).error().kind; };
  for (const json::value& strange :
       {json::value(nullptr), json::value(1), json::value{{"base64", 1}}, json::value{{"base64", "?"}},
        json::value{{"base64", "YWJj"}}, json::value{{"base64", "YQ=="}, {"totalBytes", -1}},
        json::value{{"base64", "YQ=="}, {"totalBytes", "1"}}}) {
    CAPTURE(json::serialize(strange));
    host.answersWith(strange);
    CHECK(kindOfRead() == ErrorKind::kInternal);
    CHECK(host.artifacts().search("r", "q", 1, {}).error().kind == ErrorKind::kInternal);
    CHECK(host.artifacts().write("c", {}, {}).error().kind == ErrorKind::kInternal);
  }
  // Nothing although there is more, more than there is, a line before the first, a name that is none.
  host.answersWith(json::value{{"base64", ""}, {"totalBytes", 5}});
  CHECK(kindOfRead() == ErrorKind::kInternal);
  host.answersWith(json::value{{"base64", "YWI="}, {"totalBytes", 1}});
  CHECK(kindOfRead() == ErrorKind::kInternal);
  host.answersWith(json::value{{"matches", {{{"line", 0}, {"text", "a"}}}}});
  CHECK(host.artifacts().search("r", "q", 2, {}).error().kind == ErrorKind::kInternal);
  host.answersWith(json::value{{"reference", ""}});
  CHECK(host.artifacts().write("c", {}, {}).error().kind == ErrorKind::kInternal);
  host.answersWith(json::value{{"base64", "YQ=="}, {"totalBytes", 1}});
  CHECK(host.artifacts().read("r", 0, 2, {})->text == "a");
  host.answersWith(json::value{{"base64", "YWI="}});
  CHECK(!host.artifacts().read("r", 0, 2, {})->totalBytes);
  host.answersWith(json::value{{"matches", {{{"line", 1}, {"text", "a"}}, {{"line", 2}, {"text", "b"}}}}});
  CHECK(host.artifacts().search("r", "q", 2, {})->size() == 2);
  CHECK(host.artifacts().search("r", "q", 1, {}).error().kind == ErrorKind::kInternal);
}

TEST_CASE("host artifacts: who may read is asked first, and without an answer nobody may") {
  KeepingHost host("x");
  const auto asked = [&] { return host.artifacts().authorization("r", {}); };
  host.answersWith(json::value{{"request", {{"operation", "shell"}}}});
  CHECK((*asked())->at("operation") == "shell");
  host.answersWith(json::value(json::object()));
  CHECK(!asked()->has_value());
  host.answersWith(json::value{{"request", 1}});
  CHECK(asked().error().kind == ErrorKind::kForbidden);
  host.answersWith(json::value(nullptr));
  CHECK(asked().error().kind == ErrorKind::kForbidden);
  host.answersWith(hostSaid("ANYTHING"));
  CHECK(asked().error().kind == ErrorKind::kForbidden);
  host.answersWith(hostSaid("SPILL_REFERENCE_UNKNOWN"));
  CHECK(asked().error().kind == ErrorKind::kSpillReferenceUnknown);
  CHECK(host.artifacts().read("r", 0, 1, {}).error().kind == ErrorKind::kSpillReferenceUnknown);
}
