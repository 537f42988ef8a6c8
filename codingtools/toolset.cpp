#include "codingtools/toolset.h"

#include <utility>

namespace stitchkit {

Toolset::Toolset(ToolServices& services, std::string id, std::shared_ptr<ToolSession> session, ToolsetRules rules)
    : services_(services),
      id_(std::move(id)),
      session_(std::move(session)),
      rules_(std::move(rules)),
      guard_(services.host, id_, rules_.guard),
      hostArtifacts_(services.host) {}

ToolOffer Toolset::offer() const {
  ToolOffer offer;
  offer.limits = rules_.limits;
  for (const auto& [alias, path] : rules_.shell.executables) {
    offer.executables.push_back(alias);
  }
  offer.keepsOutput = rules_.artifacts != ArtifactKeeper::kNone;
  return offer;
}

}  // namespace stitchkit
