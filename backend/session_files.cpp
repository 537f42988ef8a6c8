#include "backend/session_files.h"

#include <fcntl.h>

#include <chrono>
#include <utility>

#include "codingtools/file_error.h"
#include "codingtools/regular_file.h"
#include "rpc/base/limits.h"

namespace stitchkit {
namespace {

constexpr std::chrono::milliseconds kGuestTimeout{limits::kCommandTimeoutMs};

Error endedByStop() {
  return Error(ErrorKind::kStopped, "The handle was stopped");
}

/// A file that a guest has opened, and may have made: by whatever name, all of its file system is made durable.
Result<void> overwrite(const StoredSession& session, int file, std::string_view content) {
  if (Result<void> written = overwriteRegular(file, content); !written) {
    return written;
  }
  if (const int error = session.staging().durability().settleTree(file); error != 0) {
    return internalError("The change could not be made durable", "sync", error);
  }
  return {};
}

}  // namespace

// One operation, from the request to its answer.
struct SessionFiles::Work {
  std::stop_source stop;
  bool handleStopped = false;
  int parts = 1;    // that finish() is still to be told of
  Operation guest;  // while one is at work for it

  void end() {
    stop.request_stop();
    if (guest) {
      guest->cancel();
    }
  }

  // What was ended because the handle stops is told as such.
  template <class T>
  Result<T> settled(Result<T> result) const {
    return !result && handleStopped && result.error().kind == ErrorKind::kCancelled ? Result<T>(endedByStop())
                                                                                    : std::move(result);
  }
};

SessionFiles::SessionFiles(BackendServices& services, std::shared_ptr<StoredSession> session,
                           std::function<std::shared_ptr<const PreparedProfile>()> profile,
                           std::function<void()> onIdle)
    : services_(services), session_(std::move(session)), profile_(std::move(profile)), onIdle_(std::move(onIdle)) {}

std::shared_ptr<SessionFiles::Work> SessionFiles::begin(const std::shared_ptr<Cancellation>& cancellation) {
  auto work = std::make_shared<Work>();
  works_.insert(work);
  cancellation->onCancel([work] { work->end(); });
  return work;
}

void SessionFiles::finish(const std::shared_ptr<Work>& work) {
  if (--work->parts > 0) {
    return;
  }
  works_.erase(work);
  if (stopped_ && works_.empty()) {
    session_.reset();
  }
  if (works_.empty()) {
    onIdle_();
  }
}

void SessionFiles::stop() {
  stopped_ = true;
  for (const auto& work : works_) {
    work->handleStopped = true;
    work->end();
  }
  if (works_.empty()) {
    session_.reset();
  }
}

// `job(session, token)` runs on a worker; `then` on the loop.
template <class T, class Job>
void SessionFiles::onWorker(std::size_t bytes, const std::shared_ptr<Work>& work, Job job, Then<T> then,
                            std::function<void()> after) {
  services_.workers.run(
      Workers::Kind::kRequest, bytes,
      [session = session_, token = work->stop.get_token(), job = std::move(job)]() -> Result<T> {
        if (token.stop_requested()) {
          return fileWorkCancelled();
        }
        return job(*session, token);
      },
      [work, then = std::move(then)](Result<T> result) { then(work->settled(std::move(result))); }, std::move(after));
}

void SessionFiles::read(const WorkspacePath& path, const std::shared_ptr<Cancellation>& cancellation,
                        Then<std::string> then) {
  if (services_.workers.nothingWaits()) {
    if (auto cached = session_->workspace().readCachedFile(path, limits::kReadOnLoopBytes)) {
      then(std::move(*cached));
      return;
    }
  }
  const auto work = begin(cancellation);
  const auto self = shared_from_this();
  const auto finished = [self, work, then = std::move(then)](Result<std::string> bytes) {
    then(std::move(bytes));
    self->finish(work);
  };
  onWorker<std::string>(
      0, work,
      [path](const StoredSession& session, const std::stop_token&) {
        return session.workspace().readFile(path, limits::kSessionFileBytes);
      },
      [self, work, path, finished](Result<std::string> bytes) {
        if (bytes || !isSymlink(bytes.error())) {
          finished(std::move(bytes));
          return;
        }
        GuestOpenRequest request;
        request.path = path.canonical();
        request.flags = O_RDONLY;
        self->openThroughGuest(std::move(request), work, [self, work, finished](Result<UniqueFd> fd) {
          if (!fd) {
            finished(std::move(fd).error());
            return;
          }
          self->onWorker<std::string>(
              0, work,
              [file = std::make_shared<UniqueFd>(std::move(*fd))](const StoredSession&, const std::stop_token&) {
                return readRegular(file->get(), limits::kSessionFileBytes);
              },
              finished);
        });
      });
}

void SessionFiles::write(const WorkspacePath& path, std::string bytes,
                         const std::shared_ptr<Cancellation>& cancellation, Then<void> then) {
  const auto work = begin(cancellation);
  const auto self = shared_from_this();
  const auto content = std::make_shared<const std::string>(std::move(bytes));
  const auto finished = [self, work, then = std::move(then)](Result<void> result) {
    then(std::move(result));
    self->finish(work);
  };
  const auto replaced = std::make_shared<ReplacedFile>();
  work->parts = 2;  // the answer, and what goes on behind it
  onWorker<void>(
      content->size(), work,
      [path, content, replaced](const StoredSession& session, const std::stop_token&) -> Result<void> {
        Result<ReplacedFile> done =
            session.workspace().replaceFile(path, *content, ContainedDirectory::Parents::kCreate, session.staging());
        if (!done) {
          return std::move(done).error();
        }
        *replaced = std::move(*done);
        return {};
      },
      [self, work, path, content, finished](Result<void> result) {
        if (result || !isSymlink(result.error())) {
          finished(std::move(result));
          return;
        }
        GuestOpenRequest request;
        request.path = path.canonical();
        request.flags = O_WRONLY | O_CREAT;
        request.createParents = true;
        self->openThroughGuest(std::move(request), work, [self, work, content, finished](Result<UniqueFd> fd) {
          if (!fd) {
            finished(std::move(fd).error());
            return;
          }
          self->onWorker<void>(
              content->size(), work,
              [content, file = std::make_shared<UniqueFd>(std::move(*fd))](const StoredSession& session,
                                                                           const std::stop_token&) {
                return overwrite(session, file->get(), *content);
              },
              finished);
        });
      },
      [self, work, session = session_, replaced] {
        replaced->settle();
        session->staging().prepare();
        self->services_.loop.post([self, work] { self->finish(work); });
      });
}

void SessionFiles::remove(const WorkspacePath& path, const std::shared_ptr<Cancellation>& cancellation,
                          Then<void> then) {
  const auto work = begin(cancellation);
  const auto self = shared_from_this();
  const auto finished = [self, work, then = std::move(then)](Result<void> result) {
    then(std::move(result));
    self->finish(work);
  };
  onWorker<void>(
      0, work,
      [path](const StoredSession& session, const std::stop_token& token) {
        return session.workspace().removeTree(path, token, session.staging().durability());
      },
      [self, work, path, finished](Result<void> result) {
        if (result || !isSymlink(result.error())) {
          finished(std::move(result));
        } else {
          self->removeThroughGuest(path.canonical(), work, finished);
        }
      });
}

void SessionFiles::openThroughGuest(GuestOpenRequest request, const std::shared_ptr<Work>& work, Then<UniqueFd> then) {
  queueGuest(work, [self = shared_from_this(), request = std::move(request), work,
                    then = std::move(then)](std::function<void()> ended) {
    return openInGuest(self->services_.loop.context(), *self->profile_(), request, kGuestTimeout,
                       [work, then, ended = std::move(ended)](Result<UniqueFd> fd) {
                         ended();
                         then(work->settled(std::move(fd)));
                       });
  });
}

void SessionFiles::removeThroughGuest(const std::string& path, const std::shared_ptr<Work>& work, Then<void> then) {
  queueGuest(work, [self = shared_from_this(), path, work, then = std::move(then)](std::function<void()> ended) {
    return removeInGuest(self->services_.loop.context(), *self->profile_(), path, kGuestTimeout,
                         [work, then, ended = std::move(ended)](Result<void> result) {
                           ended();
                           then(work->settled(std::move(result)));
                         });
  });
}

void SessionFiles::queueGuest(const std::shared_ptr<Work>& work, GuestStart start) {
  waitingGuests_.emplace_back(work, std::move(start));
  startGuests();
}

// A work that was ended while it waited starts its guest all the same and cancels it: one way out for all.
void SessionFiles::startGuests() {
  while (guests_ < limits::kFileGuests && !waitingGuests_.empty()) {
    auto [work, start] = std::move(waitingGuests_.front());
    waitingGuests_.pop_front();
    ++guests_;
    work->guest = start([self = shared_from_this(), work = work] {
      work->guest.reset();
      --self->guests_;
      self->startGuests();
    });
    if (work->stop.stop_requested() && work->guest) {
      work->guest->cancel();
    }
  }
}

}  // namespace stitchkit
