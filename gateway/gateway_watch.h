// What guests ask of a handle's gateway, for who watches the sidecar: counts, and a line of the log a request.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "rpc/base/log.h"

namespace stitchkit {

struct Rule;

/// How a guest's request ended.
enum class GatewayOutcome : std::uint8_t {
  kAnswered,        ///< the guest has the upstream's answer
  kDenied,          ///< by the policy, or because such a request is never passed on
  kMalformed,       ///< no request that is read: 400, 408, 413, 417, 431
  kBusy,            ///< 503
  kUpstreamFailed,  ///< 502
  kGuestGone,       ///< the guest left before it had the answer
  kEnded,           ///< the policy was changed, or the handle stopped
};
inline constexpr std::size_t kGatewayOutcomes = 7;
/// As it stands in lines and in `backend.stats`: `upstream-failed`.
std::string_view nameOf(GatewayOutcome outcome);

/// One request that is over. What comes from a guest is cut and cleaned on its way into the log.
struct GatewayRecord {
  std::string_view method = {};
  const Rule* rule = nullptr;      ///< that it fell under
  std::string_view host = {};      ///< what the guest asked for, where there is no rule
  unsigned status = 0;             ///< that the guest was answered; 0: nothing
  std::uint64_t requestBytes = 0;  ///< of bodies
  std::uint64_t responseBytes = 0;
  std::chrono::steady_clock::time_point began = {};
  GatewayOutcome outcome = GatewayOutcome::kAnswered;
};

/// A number that goes up and down, and how far it has been up. Thread-safe.
class Gauge {
 public:
  void add(std::uint64_t amount) noexcept {
    const std::uint64_t now = now_.fetch_add(amount, std::memory_order_relaxed) + amount;
    std::uint64_t most = most_.load(std::memory_order_relaxed);
    while (most < now && !most_.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
    }
  }
  void subtract(std::uint64_t amount) noexcept { now_.fetch_sub(amount, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t now() const noexcept { return now_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t most() const noexcept { return most_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> now_{0};
  std::atomic<std::uint64_t> most_{0};
};

/// Of one handle. Thread-safe.
class GatewayWatch {
 public:
  /// @param handle, session: as lines name them.
  GatewayWatch(std::string handle, std::string session);

  void ended(const GatewayRecord& record);
  [[nodiscard]] std::uint64_t count(GatewayOutcome outcome) const noexcept {
    return counts_[static_cast<std::size_t>(outcome)].load(std::memory_order_relaxed);
  }

  /// Requests that have ended.
  [[nodiscard]] std::uint64_t total() const noexcept;

  Gauge connections;
  Gauge waitingConnections;  ///< for a place
  Gauge requests;            ///< that hold one of the slots
  Gauge heldBodyBytes;

 private:
  void write(const GatewayRecord& record);

  const std::string handle_;
  const std::string session_;
  std::array<std::atomic<std::uint64_t>, kGatewayOutcomes> counts_{};
  LogBudget served_;
  LogBudget refused_;  // apart, so that a guest that is denied again and again hides nothing
};

}  // namespace stitchkit
