#include "gateway/redaction.h"

#include "gateway/secret_forms.h"
#include "gateway/secret_search.h"

namespace stitchkit {

Redactor::Redactor(const std::vector<HeaderField>& injected) {
  const std::vector<std::string> secrets = secretForms(injected);
  if (!secrets.empty()) {
    search_ = std::make_shared<const SecretSearch>(secrets);
  }
}

bool Redactor::redact(std::string& text) const {
  return search_ && search_->overwrite(text);
}

bool Redactor::finds(std::string_view text) const {
  return search_ && search_->finds(text);
}

}  // namespace stitchkit
