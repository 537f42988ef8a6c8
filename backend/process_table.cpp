#include "backend/process_table.h"

#include <algorithm>
#include <map>
#include <utility>

#include "rpc/base/limits.h"

namespace stitchkit {
void SpawnedProcess::whenEnded(ResultReply reply) {
  if (outcome_) {
    told_ = true;
    reply(*outcome_);
  } else {
    waiting_.push_back(std::move(reply));
  }
}

std::size_t SpawnedProcess::heldBytes() const {
  return *outcome_ ? (*outcome_)->standardOutput.size() + (*outcome_)->standardError.size() : 0;
}

void SpawnedProcess::letOutputGo() {
  outcome_ = std::make_unique<Result<GuestOutcome>>(
      Error(ErrorKind::kLimit, "The output of the process was let go to make room for that of others")
          .withReason("results")
          .withDetail("exitCode", std::int64_t{(*outcome_)->exitCode})
          .withDetail("limit", static_cast<std::int64_t>(limits::kEndedProcessBytes))
          .withHint("Ask for results sooner, stream the output, or write it to a file."));
}

void SpawnedProcess::stop() {
  if (guest_) {
    guest_->kill(EndCause::kStopped);
  }
}

std::shared_ptr<SpawnedProcess> ProcessTable::add(std::string handle, std::shared_ptr<Guest> guest) {
  auto process = std::make_shared<SpawnedProcess>("p" + std::to_string(++last_), std::move(handle), std::move(guest));
  processes_.emplace(process->id(), process);
  return process;
}

Result<std::shared_ptr<SpawnedProcess>> ProcessTable::find(std::string_view id) const {
  const auto found = processes_.find(std::string(id));
  if (found == processes_.end()) {
    return Error(ErrorKind::kNotFound, "There is no such process")
        .withHint("The results of the last " + std::to_string(limits::kEndedProcesses) + " processes to end are kept.");
  }
  return found->second;
}

void ProcessTable::ended(const std::shared_ptr<SpawnedProcess>& process, Result<GuestOutcome> outcome) {
  process->guest_.reset();
  process->outcome_ = std::make_unique<Result<GuestOutcome>>(std::move(outcome));
  endedBytes_ += process->heldBytes();
  endedOnes_.push_back(process);
  for (auto& reply : std::exchange(process->waiting_, {})) {
    process->told_ = true;
    reply(*process->outcome_);
  }
  forgetOldest();
  mostEnded_.see(endedOnes_.size());
  mostEndedBytes_.see(endedBytes_);
}

QueueState ProcessTable::endedOnes() const {
  return {endedOnes_.size(), mostEnded_.value(), limits::kEndedProcesses};
}

QueueState ProcessTable::endedBytes() const {
  return {endedBytes_, mostEndedBytes_.value(), limits::kEndedProcessBytes};
}

std::deque<std::shared_ptr<SpawnedProcess>>::iterator ProcessTable::oldestTold() {
  return std::find_if(endedOnes_.begin(), endedOnes_.end(), [](const auto& process) { return process->told_; });
}

void ProcessTable::forgetOldest() {
  while (endedOnes_.size() > limits::kEndedProcesses || endedBytes_ > limits::kEndedProcessBytes) {
    auto victim = oldestTold();
    if (victim == endedOnes_.end() && endedOnes_.size() <= limits::kEndedProcesses) {
      letOutputGo();
      return;
    }
    victim = victim == endedOnes_.end() ? endedOnes_.begin() : victim;
    endedBytes_ -= (*victim)->heldBytes();
    processes_.erase((*victim)->id());
    endedOnes_.erase(victim);
  }
}

std::string ProcessTable::largestHandle() const {
  std::map<std::string, std::size_t> held;
  for (const auto& process : endedOnes_) {
    held[process->handle_] += process->heldBytes();
  }
  return std::max_element(held.begin(), held.end(), [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

// Nobody has asked for any of them.
void ProcessTable::letOutputGo() {
  while (endedBytes_ > limits::kEndedProcessBytes) {
    const std::string handle = largestHandle();
    const auto victim = std::find_if(endedOnes_.begin(), endedOnes_.end(), [&](const auto& process) {
      return process->handle_ == handle && process->heldBytes() > 0;
    });
    endedBytes_ -= (*victim)->heldBytes();
    (*victim)->letOutputGo();
  }
}

}  // namespace stitchkit
