#include "gateway/name_lookups.h"

#include <utility>

#include "rpc/base/limits.h"

namespace stitchkit {

void NameLookups::find(const Origin& origin, Done done) {
  if (origin.isAddress) {
    addressesOf(origin, lookup_, privateNames_, context_, std::move(done));
    return;
  }
  std::string key = origin.host + ':' + std::to_string(origin.port);
  const auto found = waiting_.find(key);
  if (found != waiting_.end()) {
    found->second.push_back(std::move(done));
    return;
  }
  if (waiting_.size() >= limits::kGatewayLookups) {
    done(Error(ErrorKind::kInternal, "Too many names are being looked up"));
    return;
  }
  waiting_[key].push_back(std::move(done));
  addressesOf(origin, lookup_, privateNames_, context_,
              [weak = weak_from_this(), key](const Result<Endpoints>& result) {
                if (const auto self = weak.lock()) {
                  self->answer(key, result);
                }
              });
}

void NameLookups::answer(const std::string& key, const Result<Endpoints>& found) {
  const auto waiters = waiting_.extract(key);
  for (const Done& done : waiters.mapped()) {
    done(found);
  }
}

}  // namespace stitchkit
