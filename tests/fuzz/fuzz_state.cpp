// The JSON texts on disk, where somebody else may have written: what is read of any bytes, and that what is written is
// read again by us and by others.
#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "backend/storage/json_text.h"
#include "rpc/base/utf8.h"
#include "tests/fuzz/fields.h"
#include "tests/fuzz/require.h"

namespace stitchkit {
namespace {

using Json = nlohmann::json;

void checkRead(std::string_view text) {
  const Json value = Json::parse(text, nullptr, false);
  const std::string member = stringMember(text, "sessionId");
  if (!member.empty()) {
    FUZZ_REQUIRE(value.is_object() && value.at("sessionId") == member);
  }
  if (isStringObject(text, {{"backend", "b"}, {"templateKey", "k"}})) {
    FUZZ_REQUIRE((value == Json{{"backend", "b"}, {"templateKey", "k"}}));
  }
}

void checkWritten(const std::string& backend, const std::string& key) {
  const std::string text = writeStringObject({{"backend", backend}, {"templateKey", key}});
  FUZZ_REQUIRE((Json::parse(text) == Json{{"backend", backend}, {"templateKey", key}}));
  FUZZ_REQUIRE(text == Json({{"backend", backend}, {"templateKey", key}}).dump() ||
               text.find("\x7f") != std::string::npos);
  FUZZ_REQUIRE(stringMember(text, "backend") == backend && stringMember(text, "templateKey") == key);
  FUZZ_REQUIRE(isStringObject(text, {{"templateKey", key}, {"backend", backend}}));
  FUZZ_REQUIRE(!isStringObject(text, {{"backend", backend}}));
}

}  // namespace
}  // namespace stitchkit

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stitchkit;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  checkRead(input);
  const auto [backend, key] = fuzz::fields<2>(input);
  checkWritten(toUtf8(backend), toUtf8(key));
  return 0;
}
