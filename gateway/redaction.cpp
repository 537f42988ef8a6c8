#include "gateway/redaction.h"
namespace stitchkit {
Redactor::Redactor(const std::vector<HeaderField>& injected) {
  for (auto& f : injected)
    plain_.push_back(f.value);
}
bool Redactor::redact(std::string& text) const {
  bool any = false;
  for (auto& v : plain_) {
    if (v.empty())
      continue;
    for (size_t at = text.find(v); at != std::string::npos; at = text.find(v, at)) {
      text.replace(at, v.size(), std::string(v.size(), '*'));
      any = true;
    }
  }
  return any;
}
bool Redactor::finds(std::string_view text) const {
  std::string t(text);
  return redact(t);
}
}  // namespace stitchkit
