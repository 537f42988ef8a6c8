// A state directory, a workspace and a loop for tests that launch guests for real.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <string>
#include <vector>

#include "backend/launch/guest.h"

namespace stitchkit::test {

/// A directory below /tmp, searchable on its way down, removed with all it holds.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory();
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// One workspace with its profile; the support files and a copy of bwrap, by which its processes are told from others',
/// are shared by all fixtures of the program.
class LaunchFixture {
 public:
  LaunchFixture();

  [[nodiscard]] std::string workspace() const { return directory_.path() + "/workspace"; }
  [[nodiscard]] LaunchProfile profile() const;
  [[nodiscard]] PreparedProfile prepared() const { return prepared(profile()); }
  [[nodiscard]] PreparedProfile prepared(const LaunchProfile& made) const;

  /// In /workspace, with ample limits.
  static Command command(std::string executable, std::vector<std::string> arguments = {});
  static Command shell(std::string script) { return command("/bin/sh", {"-c", std::move(script)}); }

  std::shared_ptr<Guest> start(const Command& command, std::string standardInput, GuestOptions options,
                               Guest::Completion completion);
  /// To the end.
  Result<GuestOutcome> run(const Command& command, std::string standardInput = {}, GuestOptions options = {});
  Result<GuestOutcome> run(const Command& command, const PreparedProfile& profile);
  GuestOutcome runShell(std::string script, std::string standardInput = {});

  boost::asio::io_context io;

 private:
  TemporaryDirectory directory_;
  DirectoryIdentity identity_;
};

/// The copy of bwrap that all fixtures launch.
const std::string& fixtureBubblewrap();

/// Processes that run fixtureBubblewrap(): every sandbox has one at least.
int liveSandboxes();
int liveSandboxes(const std::string& bubblewrap);
/// Processes whose command line holds `marker`.
int processesNamed(const std::string& marker);
/// Calls `condition` until it holds or `seconds` have passed.
bool eventually(const std::function<bool()>& condition, double seconds = 15);
int openDescriptors();
/// Children of this process that wait to be reaped.
int zombies();
void writeFile(const std::string& path, const std::string& text, int mode = 0644);
std::string readFile(const std::string& path);
bool exists(const std::string& path);

}  // namespace stitchkit::test
