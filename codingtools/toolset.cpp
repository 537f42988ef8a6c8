#include "codingtools/toolset.h"

#include <utility>

namespace stitchkit {

namespace {

ToolOffer offerOf(const ToolsetRules& rules) {
  ToolOffer offer;
  offer.limits = rules.limits;
  for (const auto& [alias, path] : rules.shell.executables) {
    offer.executables.push_back(alias);
  }
  offer.keepsOutput = rules.artifacts != ArtifactKeeper::kNone;
  return offer;
}

}  // namespace

Toolset::Toolset(ToolServices& services, std::string id, std::shared_ptr<ToolSession> session, ToolsetRules rules)
    : services_(services),
      id_(std::move(id)),
      session_(std::move(session)),
      rules_(std::move(rules)),
      offer_(offerOf(rules_)),
      guard_(services.host, id_, rules_.guard),
      hostArtifacts_(services.host, id_) {}

}  // namespace stitchkit
