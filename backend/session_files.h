// Files of a live session: through the contained-file engine on a worker (a small file in the page cache on the loop
// itself), and through a guest where a symbolic link stands in the path, so that the host sees what a guest would.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <unordered_set>
#include <utility>

#include "backend/launch/guest_file_operation.h"
#include "backend/services.h"
#include "rpc/cancellation.h"

namespace stitchkit {

/// Loop-thread only. Results are given on the loop.
class SessionFiles : public std::enable_shared_from_this<SessionFiles> {
 public:
  template <class T>
  using Then = std::function<void(Result<T>)>;

  /// `profile` gives the profile that guests are started with.
  SessionFiles(BackendServices& services, std::shared_ptr<StoredSession> session,
               std::function<std::shared_ptr<const PreparedProfile>()> profile, std::function<void()> onIdle);

  void read(const WorkspacePath& path, const std::shared_ptr<Cancellation>& cancellation, Then<std::string> then);
  void write(const WorkspacePath& path, std::string bytes, const std::shared_ptr<Cancellation>& cancellation,
             Then<void> then);
  void remove(const WorkspacePath& path, const std::shared_ptr<Cancellation>& cancellation, Then<void> then);

  /// Operations under way. `onIdle` is called when there are none any more.
  [[nodiscard]] std::size_t active() const { return works_.size(); }
  /// Ends what can be ended early; nothing more is started. The session is let go when the last operation has ended.
  void stop();

 private:
  struct Work;
  using Operation = std::shared_ptr<GuestFileOperation>;
  /// Starts a guest's operation and calls `ended` when it has ended.
  using GuestStart = std::function<Operation(std::function<void()> ended)>;

  std::shared_ptr<Work> begin(const std::shared_ptr<Cancellation>& cancellation);
  void finish(const std::shared_ptr<Work>& work);
  template <class T, class Job>
  void onWorker(
      std::size_t bytes, const std::shared_ptr<Work>& work, Job job, Then<T> then, std::function<void()> after = [] {});
  void openThroughGuest(GuestOpenRequest request, const std::shared_ptr<Work>& work, Then<UniqueFd> then);
  void removeThroughGuest(const std::string& path, const std::shared_ptr<Work>& work, Then<void> then);
  void queueGuest(const std::shared_ptr<Work>& work, GuestStart start);
  void startGuests();

  BackendServices& services_;
  std::shared_ptr<StoredSession> session_;
  std::function<std::shared_ptr<const PreparedProfile>()> profile_;
  std::function<void()> onIdle_;
  std::unordered_set<std::shared_ptr<Work>> works_;
  std::deque<std::pair<std::shared_ptr<Work>, GuestStart>> waitingGuests_;
  std::size_t guests_ = 0;
  bool stopped_ = false;
};

}  // namespace stitchkit
