// Parameters of one method against its schema. The first byte chooses the method, the rest is a JSON text.
#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rpc/message.h"
#include "schema/openrpc.h"
#include "tests/fuzz/require.h"

namespace stitchkit {
namespace {

constexpr std::size_t kMaxIssues = 32;

const std::vector<std::string>& methods() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> made;
    for (const auto& method : OpenRpc::instance().document().at("methods").as_array()) {
      made.emplace_back(method.at("name").as_string().c_str());
    }
    return made;
  }();
  return names;
}

void checkRefusal(const Error& error) {
  FUZZ_REQUIRE(error.kind == ErrorKind::kValidation);
  const nlohmann::json wire = nlohmann::json::parse(errorText(1, error));
  const auto& issues = wire["error"]["data"]["details"]["issues"];
  FUZZ_REQUIRE(!issues.empty() && issues.size() <= kMaxIssues);
}

void checkParams(const std::string& method, const boost::json::value& params) {
  const auto once = OpenRpc::instance().checkParams(method, params);
  if (!once) {
    checkRefusal(once.error());
    return;
  }
  // Filled in once, nothing is left to fill in or to find fault with.
  const auto twice = OpenRpc::instance().checkParams(method, *once);
  FUZZ_REQUIRE(twice.has_value());
  FUZZ_REQUIRE(*once == *twice);
  // Nothing that was given is lost or renamed.
  for (const auto& member : params.is_null() ? boost::json::object() : params.get_object()) {
    FUZZ_REQUIRE(once->contains(member.key()));
  }
}

}  // namespace
}  // namespace stitchkit

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stitchkit;
  if (size < 1) {
    return 0;
  }
  const std::string text = R"({"jsonrpc":"2.0","method":"m","params":)" +
                           std::string(reinterpret_cast<const char*>(data) + 1, size - 1) + "}";
  const Result<Frame> frame = parseFrame(text);
  if (!frame || frame->batch) {
    return 0;
  }
  if (const auto* request = std::get_if<RequestMessage>(&frame->messages.front())) {
    checkParams(methods()[data[0] % methods().size()], request->params);
  }
  return 0;
}
