#include "backend/storage/stray_guests.h"

#include "codingtools/contained_open.h"
#include "codingtools/directory_reader.h"
#include "rpc/base/log.h"
#include "rpc/base/unique_fd.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

namespace stitchkit {

namespace {

using Clock = std::chrono::steady_clock;

/// "" when the process is gone or may not be looked at.
std::string readProcFile(int proc, const std::string& path) {
  const UniqueFd file(::openat(proc, path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char buffer[16384];
  for (ssize_t got = 1; file && got > 0;) {
    got = ::read(file.get(), buffer, sizeof buffer);
    text.append(buffer, got > 0 ? static_cast<std::size_t>(got) : 0);
  }
  return text;
}

/// Calls `visit(fields)` with the space-separated fields of each line.
template <class Visit>
void eachLine(std::string_view text, Visit visit) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    std::vector<std::string_view> fields;
    while (!line.empty()) {
      const std::string_view field = line.substr(0, line.find_first_of(" \t"));
      line.remove_prefix(std::min(line.size(), field.size() + 1));
      if (!field.empty()) {
        fields.push_back(field);
      }
    }
    visit(fields);
  }
}

/// Looks for the processes of one session.
class StrayFinder {
 public:
  explicit StrayFinder(std::string_view sessionId)
      : proc_(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
        source_("/sessions/" + std::string(sessionId) + "/workspace") {
    eachLine(readProcFile(proc_.get(), "self/mountinfo"), [this](const auto& fields) {
      if (!fields.empty()) {
        ownMounts_.emplace(fields[0]);
      }
    });
  }

  [[nodiscard]] bool ready() const { return proc_.valid() && !ownMounts_.empty(); }

  /// pidfds of all that are there now.
  std::vector<UniqueFd> find() {
    std::vector<UniqueFd> found;
    DirectoryReader reader;
    if (reader.start(proc_.get()) != 0) {
      return found;
    }
    while (const DirectoryReader::Entry* const entry = reader.next()) {
      const std::string pid(entry->name);
      pid_t number = 0;
      const auto [end, code] = std::from_chars(pid.data(), pid.data() + pid.size(), number);
      if (code != std::errc{} || end != pid.data() + pid.size() || !isStray(pid)) {
        continue;
      }
      // The number may have passed to another process by now; what the descriptor names is looked at once more.
      UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, number, 0)));
      if (process && isStray(pid) && ::syscall(SYS_pidfd_send_signal, process.get(), 0, nullptr, 0) == 0) {
        found.push_back(std::move(process));
      }
    }
    return found;
  }

 private:
  [[nodiscard]] bool isStray(const std::string& pid) const { return hasWorkspace(pid) && isNested(pid); }

  /// Mount ids are unique on the machine: a mount of our own namespace is told by its id.
  [[nodiscard]] bool hasWorkspace(const std::string& pid) const {
    bool has = false;
    eachLine(readProcFile(proc_.get(), pid + "/mountinfo"), [&](const auto& fields) {
      // /newroot is where bwrap prepares what becomes the root.
      has = has || (fields.size() > 4 && fields[3].ends_with(source_) &&
                    (fields[4] == "/workspace" || fields[4] == "/newroot/workspace") &&
                    ownMounts_.count(std::string(fields[0])) == 0);
    });
    return has;
  }

  /// Whether it lives in a PID namespace below ours, as every guest does.
  [[nodiscard]] bool isNested(const std::string& pid) const {
    bool nested = false;
    eachLine(readProcFile(proc_.get(), pid + "/status"),
             [&](const auto& fields) { nested = nested || (fields.size() > 2 && fields[0] == "NSpid:"); });
    return nested;
  }

  UniqueFd proc_;
  std::string source_;
  std::set<std::string> ownMounts_;
};

int millisecondsUntil(Clock::time_point end) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
  return left > 0 ? static_cast<int>(left) : 0;
}

/// Kills and waits. False at the deadline.
bool endAll(const std::vector<UniqueFd>& processes, Clock::time_point end) {
  for (const UniqueFd& process : processes) {
    static_cast<void>(::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0));
  }
  for (const UniqueFd& process : processes) {
    pollfd waiting{process.get(), POLLIN, 0};
    int ready = 0;
    do {
      ready = ::poll(&waiting, 1, millisecondsUntil(end));
    } while (ready < 0 && errno == EINTR);
    if (ready <= 0) {
      return false;
    }
  }
  return true;
}

}  // namespace

Result<void> endStrayGuests(std::string_view sessionId, std::chrono::milliseconds deadline) {
  const Clock::time_point end = Clock::now() + deadline;
  StrayFinder finder(sessionId);
  if (!finder.ready()) {
    return internalError("The session's former guests could not be looked for", "open /proc", ENOENT);
  }
  // A guest may fork while the list is read: done when a whole look finds nobody.
  for (std::vector<UniqueFd> strays = finder.find(); !strays.empty(); strays = finder.find()) {
    logEvent(LogLevel::kWarning, "stray-guests",
             {{"session", sessionId}, {"count", strays.size()}, {"message", "ending guests of a dead owner"}});
    if (!endAll(strays, end)) {
      return Error(ErrorKind::kBusy, "Guests of the session's former owner are still ending")
          .withHint("Try again in a moment.");
    }
  }
  return {};
}

}  // namespace stitchkit
