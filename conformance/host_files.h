// What the host's side of a case does and sees in the file system: the case's own directory, the state directory in
// it, and the workspaces below that.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "conformance/json_text.h"
#include "conformance/process.h"

namespace conformance {

/// A directory below the system's temporary directory that others may search (an implementation started by root gives
/// root up, and must get at its state). Removed with everything in it at the end.
class CaseDirectory {
 public:
  CaseDirectory();
  ~CaseDirectory();
  CaseDirectory(const CaseDirectory&) = delete;
  CaseDirectory& operator=(const CaseDirectory&) = delete;

  [[nodiscard]] bool valid() const { return !root_.empty(); }
  /// The `{state}` of the command line, mode 0711.
  [[nodiscard]] std::filesystem::path state() const { return root_ / "state"; }
  /// Outside of every workspace, writable by everybody: what escapes must not reach.
  [[nodiscard]] std::filesystem::path outside() const { return root_ / "outside"; }
  /// Where the test authority's certificate is put (certificates.h) when a command line asks for it.
  [[nodiscard]] std::filesystem::path authority() const { return root_ / "authority.pem"; }
  /// Removes what is in outside().
  void clearOutside() const;

 private:
  std::filesystem::path root_;
};

/// What else is done while one waits for a FIFO: `readable` whenever the descriptor is, until it says what is wrong.
struct Meanwhile {
  std::function<int()> descriptor = [] { return -1; };
  std::function<std::optional<std::string>()> readable = {};
};

/// Operations of one case. Each returns nullopt or what went wrong. What is made belongs to the owner of the directory
/// that it is made in, so that an implementation that gave root up can use it.
class HostFiles {
 public:
  explicit HostFiles(const CaseDirectory& directory) : directory_(directory) {}

  /// Puts paths in for {state}, {outside}, {authority}, {namespace}, {session} and {workspace}.
  [[nodiscard]] std::string resolve(std::string text, const std::string& backendName, const std::string& session) const;

  std::optional<std::string> makeFile(const std::string& path, std::string_view bytes, std::optional<int> mode);
  /// Makes the file so long; what is new of it is a hole.
  std::optional<std::string> setSize(const std::string& path, std::uintmax_t bytes);
  std::optional<std::string> makeLink(const std::string& path, const std::string& target);
  std::optional<std::string> makeHardLink(const std::string& path, const std::string& target);
  std::optional<std::string> makeSocket(const std::string& path);
  std::optional<std::string> makeDirectory(const std::string& path, std::optional<int> mode);
  /// Makes a FIFO and opens it for reading, so that a guest that opens it for writing does not wait.
  std::optional<std::string> makeFifo(const std::string& path);
  /// Makes a FIFO that nobody reads.
  std::optional<std::string> makeUnreadFifo(const std::string& path);
  /// In the place of what is there.
  std::optional<std::string> move(const std::string& from, const std::string& to);
  std::optional<std::string> remove(const std::string& path);
  std::optional<std::string> setMode(const std::string& path, int mode);

  /// Waits until what came through the FIFO holds `text`.
  std::optional<std::string> awaitFifoText(const std::string& path, const std::string& text, const Meanwhile& meanwhile,
                                           Deadline deadline);
  /// Waits until the last writer of the FIFO is gone; there must have been one.
  std::optional<std::string> awaitFifoEnd(const std::string& path, const Meanwhile& meanwhile, Deadline deadline);

 private:
  struct Fifo {
    Descriptor reader;
    std::string came;
    bool ended = false;
  };
  /// False when it has ended.
  static bool readFifo(Fifo& fifo, bool noWriter);
  std::optional<std::string> awaitFifo(const std::string& path, const std::function<bool(const Fifo&)>& done,
                                       const Meanwhile& meanwhile, Deadline deadline);

  const CaseDirectory& directory_;
  std::map<std::string, Fifo> fifos_;
};

}  // namespace conformance
