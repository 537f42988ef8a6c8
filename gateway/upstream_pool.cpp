#include "gateway/upstream_pool.h"

#include <utility>

#include "rpc/base/limits.h"

namespace stitchkit {
namespace {

bool isStale(GatewayClock::time_point since) {
  return GatewayClock::now() - since >= std::chrono::milliseconds(limits::kUpstreamIdleMs);
}

}  // namespace

std::unique_ptr<UpstreamConnection> UpstreamPool::take(const Origin& origin) {
  // The one that waited least is the likeliest to be open.
  for (std::size_t i = idle_.size(); i-- > 0;) {
    if (!(idle_[i].origin == origin)) {
      continue;
    }
    std::unique_ptr<UpstreamConnection> connection = std::move(idle_[i].connection);
    const bool good = !isStale(idle_[i].since) && connection->quiet();
    idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(i));
    if (good) {
      return connection;
    }
  }
  return nullptr;
}

void UpstreamPool::put(const Origin& origin, std::unique_ptr<UpstreamConnection> connection) {
  if (idle_.size() >= limits::kUpstreamIdleConnections) {
    idle_.erase(idle_.begin());
  }
  idle_.push_back({origin, std::move(connection), GatewayClock::now()});
}

bool UpstreamPool::dropStale() {
  std::erase_if(idle_, [](const Idle& idle) { return isStale(idle.since); });
  return !idle_.empty();
}

}  // namespace stitchkit
