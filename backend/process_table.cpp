#include "backend/process_table.h"

#include <utility>

#include "rpc/base/limits.h"

namespace stitchkit {
namespace {

std::size_t heldBytes(const Result<GuestOutcome>& outcome) {
  return outcome ? outcome->standardOutput.size() + outcome->standardError.size() : 0;
}

}  // namespace

void SpawnedProcess::whenEnded(ResultReply reply) {
  if (outcome_) {
    reply(*outcome_);
  } else {
    waiting_.push_back(std::move(reply));
  }
}

void SpawnedProcess::stop() {
  if (guest_) {
    guest_->kill(EndCause::kStopped);
  }
}

std::shared_ptr<SpawnedProcess> ProcessTable::add(std::shared_ptr<Guest> guest) {
  auto process = std::make_shared<SpawnedProcess>("p" + std::to_string(++last_), std::move(guest));
  processes_.emplace(process->id(), process);
  return process;
}

Result<std::shared_ptr<SpawnedProcess>> ProcessTable::find(std::string_view id) const {
  const auto found = processes_.find(std::string(id));
  if (found == processes_.end()) {
    return Error(ErrorKind::kNotFound, "There is no such process")
        .withHint("Results of ended processes are kept until " + std::to_string(limits::kEndedProcesses) +
                  " later ones have ended.");
  }
  return found->second;
}

void ProcessTable::ended(const std::shared_ptr<SpawnedProcess>& process, Result<GuestOutcome> outcome) {
  process->guest_.reset();
  process->outcome_ = std::make_unique<Result<GuestOutcome>>(std::move(outcome));
  endedBytes_ += heldBytes(*process->outcome_);
  endedOnes_.push_back(process);
  for (auto& reply : std::exchange(process->waiting_, {})) {
    reply(*process->outcome_);
  }
  forgetOldest();
}

void ProcessTable::forgetOldest() {
  while (endedOnes_.size() > limits::kEndedProcesses ||
         (endedBytes_ > limits::kEndedProcessBytes && endedOnes_.size() > 1)) {
    const std::shared_ptr<SpawnedProcess> oldest = std::move(endedOnes_.front());
    endedOnes_.pop_front();
    endedBytes_ -= heldBytes(*oldest->outcome_);
    processes_.erase(oldest->id());
  }
}

}  // namespace stitchkit
