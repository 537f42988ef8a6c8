#include "backend/launch/warm_launches.h"

#include <sys/resource.h>

#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <thread>
#include <utility>

#include "rpc/base/limits.h"

namespace stitchkit {
namespace {

using std::chrono::milliseconds;

// A command is at work with its own start for so long, as far as others should make way for it.
constexpr milliseconds kYoung{50};
// After a command's answer was sent, or while one goes on: when the next launch is made ready. Not at once: what a host
// asks next, it asks within a millisecond, and the start of a launch keeps the loop busy for a quarter of one. A file
// that is read right after a command would come three times as late, and commands back to back would take a fourth
// longer.
constexpr milliseconds kAfterAnswer{2};
constexpr milliseconds kWhileRunning{3};
// After a launch that could not be made ready; the next command finds out why.
constexpr std::chrono::seconds kAfterFailure{1};

// A command must not fail for want of a descriptor that a launch holds which only waits.
std::size_t mostThatMayWait() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur <= limits::kOpenFilesBesideWarm) {
    return 0;
  }
  const auto room = (files.rlim_cur - limits::kOpenFilesBesideWarm) / limits::kOpenFilesOfWarmLaunch;
  return static_cast<std::size_t>(std::min<rlim_t>(room, limits::kWarmLaunches));
}

}  // namespace

/// Owns a launch as long as no command has it.
class WarmPool::Waiting final : public SandboxProcess::Owner {
 public:
  explicit Waiting(std::weak_ptr<WarmPool> pool) : pool_(std::move(pool)) {}

  /// The pool does not count it any more.
  void detach() { pool_.reset(); }

  void onReady() override {
    if (const auto pool = pool_.lock()) {
      pool->onReady();
    }
  }
  void onReport(const LaunchReport&, UniqueFd) override {}
  void onControlEnd(bool) override {}
  void onEnd(SandboxEnd) override {
    if (const auto pool = pool_.lock()) {
      pool->onEnd(this);
    }
  }

 private:
  std::weak_ptr<WarmPool> pool_;
};

WarmLaunches::WarmLaunches(boost::asio::io_context& io, std::size_t each)
    : io_(io),
      each_(each),
      most_(mostThatMayWait()),
      cores_(std::max(1U, std::thread::hardware_concurrency())),
      timer_(io) {}

std::shared_ptr<WarmPool> WarmLaunches::pool(std::shared_ptr<const PreparedProfile> profile) {
  auto pool = std::make_shared<WarmPool>(*this);
  pool->resume(std::move(profile));
  return pool;
}

std::uint64_t WarmLaunches::commandBegan() {
  commands_.emplace(++lastCommand_, Clock::now());
  if (!lacking_.empty()) {
    later(kWhileRunning);
  }
  return lastCommand_;
}

void WarmLaunches::commandEnded(std::uint64_t command) {
  commands_.erase(command);
  goOn();
}

void WarmLaunches::goOn() {
  if (!lacking_.empty()) {
    later(kAfterAnswer);
  }
}

void WarmLaunches::enqueue(std::weak_ptr<WarmPool> pool) {
  lacking_.push_back(std::move(pool));
  later(kWhileRunning);
}

void WarmLaunches::later(milliseconds delay) {
  const Clock::time_point when = std::max(Clock::now() + delay, notBefore_);
  if (armed_ && timer_.expiry() <= when) {
    return;
  }
  armed_ = true;
  timer_.expires_at(when);
  timer_.async_wait([this](boost::system::error_code error) {
    if (!error) {
      armed_ = false;
      turn();
    }
  });
}

std::size_t WarmLaunches::youngCommands() const {
  const Clock::time_point since = Clock::now() - kYoung;
  std::size_t young = 0;
  for (auto command = commands_.rbegin(); command != commands_.rend() && command->second > since; ++command) {
    ++young;
  }
  return young;
}

// One more than there are cores keeps them busy while one command after another comes, and no more than that is in the
// way of commands that are at work.
void WarmLaunches::turn() {
  while (!lacking_.empty()) {
    if (waiting_ >= most_ || starting_ >= cores_) {
      return;  // until one of these has become something else
    }
    if (Clock::now() < notBefore_) {
      later(milliseconds(0));
      return;
    }
    if (starting_ + youngCommands() > cores_) {
      later(kWhileRunning);
      return;
    }
    const std::shared_ptr<WarmPool> pool = lacking_.front().lock();
    lacking_.pop_front();
    if (pool) {
      pool->enqueued_ = false;
      if (pool->lacks()) {
        pool->startOne();
      }
    }
  }
}

void WarmLaunches::failed() {
  notBefore_ = Clock::now() + kAfterFailure;
  ++failed_;
}

WarmPool::WarmPool(WarmLaunches& launches) : launches_(launches), idle_(launches.io_) {}

void WarmPool::resume(std::shared_ptr<const PreparedProfile> profile) {
  profile_ = std::move(profile);
  wanted_ = std::min<std::size_t>(1, launches_.each_);
  used();
  refillLater();
}

void WarmPool::suspend() {
  profile_ = nullptr;
  end();
}

void WarmPool::end() {
  while (!entries_.empty()) {
    entries_.front().sandbox->kill();
    letGo(0);
  }
}

WarmPool::Taken WarmPool::take() {
  used();
  Taken taken{takeOldest(), launches_.commandBegan()};
  // That it has to wait for the launch shows that more are needed.
  if (profile_ && !(taken.sandbox && taken.sandbox->ready())) {
    wanted_ = std::min(wanted_ + 1, launches_.each_);
  }
  refillLater();
  return taken;
}

void WarmPool::ended(std::uint64_t command) {
  used();
  launches_.commandEnded(command);
}

// One that is being set up is further than one that is still to be started.
std::shared_ptr<SandboxProcess> WarmPool::takeOldest() {
  while (profile_ && !entries_.empty()) {
    const auto ready = std::find_if(entries_.begin(), entries_.end(), [](Entry& one) { return one.sandbox->ready(); });
    const auto index = static_cast<std::size_t>(ready == entries_.end() ? 0 : ready - entries_.begin());
    std::shared_ptr<SandboxProcess> taken = entries_[index].sandbox;
    letGo(index);
    if (!taken->ready() || taken->waits()) {
      return taken;
    }
    taken->kill();
  }
  return nullptr;
}

// It is a command's, or doomed.
void WarmPool::letGo(std::size_t index) {
  const Entry entry = entries_[index];
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(index));
  entry.owner->detach();
  --launches_.waiting_;
  launches_.starting_ -= entry.sandbox->ready() ? 0 : 1;
  launches_.goOn();
}

void WarmPool::refillLater() {
  if (lacks() && !std::exchange(enqueued_, true)) {
    launches_.enqueue(weak_from_this());
  }
}

void WarmPool::startOne() {
  const auto sandbox = std::make_shared<SandboxProcess>(launches_.io_);
  const auto owner = std::make_shared<Waiting>(weak_from_this());
  if (Result<void> started = sandbox->start(*profile_, owner, LaunchPriority::kBackground); !started) {
    launches_.failed();
  } else {
    entries_.push_back({sandbox, owner});
    launches_.mostWaiting_.see(++launches_.waiting_);
    ++launches_.made_;
    ++launches_.starting_;
  }
  refillLater();
}

void WarmPool::onReady() {
  --launches_.starting_;
  launches_.goOn();
}

// By itself, or because something on the machine has killed it.
void WarmPool::onEnd(const Waiting* owner) {
  const auto entry =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& one) { return one.owner.get() == owner; });
  if (entry == entries_.end()) {
    return;
  }
  const bool wasReady = entry->sandbox->ready();
  letGo(static_cast<std::size_t>(entry - entries_.begin()));
  if (!wasReady) {
    launches_.failed();
  }
  refillLater();
}

void WarmPool::used() {
  lastUse_ = WarmLaunches::Clock::now();
  if (!std::exchange(idleArmed_, true)) {
    awaitIdle();
  }
}

void WarmPool::awaitIdle() {
  idle_.expires_at(lastUse_ + milliseconds(limits::kWarmIdleMs));
  idle_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
    const auto self = weak.lock();
    if (error || !self) {
      return;
    }
    if (WarmLaunches::Clock::now() < self->lastUse_ + milliseconds(limits::kWarmIdleMs)) {
      self->awaitIdle();
      return;
    }
    self->idleArmed_ = false;
    self->wanted_ = 0;
    self->end();
  });
}

}  // namespace stitchkit
