#include "backend/diagnosis/cause.h"

#include <catch2/catch.hpp>

#include <boost/json/serialize.hpp>

#include <set>
#include <string>

#include "schema/openrpc.h"

namespace stitchkit {
namespace {

TEST_CASE("each cause has a name of its own and says what to do", "[cause]") {
  std::set<std::string> names;
  for (std::size_t number = 0; number < kCauses; ++number) {
    const CauseText& text = textOf(static_cast<Cause>(number));
    CAPTURE(text.name);
    CHECK(names.insert(text.name).second);
    CHECK(std::string(text.name).find_first_not_of("abcdefghijklmnopqrstuvwxyz-") == std::string::npos);
    CHECK(std::string(text.message).size() > 10);
    CHECK(std::string(text.message).back() != '.');
    CHECK(std::string(text.hint).back() == '.');
  }
}

TEST_CASE("the document of the protocol names each cause that an error can have", "[cause]") {
  const std::string document = boost::json::serialize(OpenRpc::instance().document());
  for (std::size_t number = 0; number < kCauses; ++number) {
    const auto cause = static_cast<Cause>(number);
    if (cause != Cause::kStaysRoot) {  // of the doctor alone
      CAPTURE(textOf(cause).name);
      CHECK(document.find('`' + std::string(textOf(cause).name) + '`') != std::string::npos);
    }
  }
}

TEST_CASE("an error by a cause carries its words", "[cause]") {
  const Error error = unavailableBecause("The sandbox could not be set up", Cause::kProcMasked);
  CHECK(error.kind == ErrorKind::kUnavailable);
  CHECK(error.reason == "proc-masked");
  CHECK(error.hint == textOf(Cause::kProcMasked).hint);
  CHECK(error.message == std::string("The sandbox could not be set up: ") + textOf(Cause::kProcMasked).message);
}

}  // namespace
}  // namespace stitchkit
