// Parameters and results of the methods as C++ types. Beyond decode() and before encode() there is no JSON.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "backend/cgroups/session_cgroup.h"
#include "backend/launch/command_payload.h"
#include "backend/storage/session_store.h"
#include "codingtools/workspace_path.h"
#include "gateway/policy.h"
#include "rpc/base/error.h"

namespace stitchkit {

struct NoParams {};
struct Done {};

/// What `initialize` sets; absent members leave the command line's word.
struct InitializeParams {
  std::string clientName;  ///< who the host is, for the log; "" when it does not say
  std::string clientVersion;
  std::optional<std::string> stateDirectory;
  std::optional<std::string> name;
  std::optional<std::string> executable;
  std::optional<int> maxConcurrentCommands;
};

/// `rpc.discover`'s answer is the document itself.
struct DiscoverResult {};

struct InitializeResult {
  std::string backendName;
  std::int64_t maxMessageBytes;
  std::int64_t maxConcurrentCommands;
};

struct TemplateParams {
  std::string name;
  std::vector<TemplateFile> files;
};

struct PrewarmResult {
  bool reused;
  std::string templateKey;
};

/// Ceilings; absent means none but the default.
struct Resources {
  SessionLimits session;
  std::uint64_t tmpBytes = 0;
  std::optional<std::uint64_t> maxFileBytes;
  std::optional<std::uint64_t> maxOpenFiles;
};

struct CreateParams {
  std::variant<std::string, TemplateParams> source;  ///< a template key, or a template to prewarm
  NetworkPolicy network;
  std::optional<SessionState> state;
  Resources resources;
};

struct Grade {
  std::vector<std::string> restrictions;
  std::vector<std::string> gaps;
  std::optional<std::string> unavailable;  ///< the reason; then the lists are empty
};

struct CreateResult {
  std::string handle;
  SessionState state;
  Grade grade;
};

struct HandleParams {
  std::string handle;
};

struct PathParams {
  std::string handle;
  WorkspacePath path = WorkspacePath::root();
};

struct WriteParams {
  std::string handle;
  WorkspacePath path = WorkspacePath::root();
  std::string bytes;
};

struct RunParams {
  std::string handle;
  Command command;
  std::string standardInput;
  bool base64 = false;
};

struct SpawnParams {
  std::string handle;
  Command command;
  std::string standardInput;
  bool stream = false;
};

struct ProcessParams {
  std::string process;
};

struct PolicyParams {
  std::string handle;
  NetworkPolicy network;
};

struct PathResult {
  std::string path;
};

struct BinaryFile {
  std::string bytes;
};

struct TextFile {
  std::string text;
};

struct Written {
  std::int64_t bytes;
};

struct RunResult {
  int exitCode;
  std::string standardOutput;
  std::string standardError;
  std::string resource;  ///< GuestOutcome::resource
  bool base64;
};

struct ProcessStarted {
  std::string process;
};

struct ProcessResult {
  int exitCode;
  std::string standardOutput;
  std::string standardError;
  std::string resource;  ///< GuestOutcome::resource
};

struct PolicyResult {
  Grade grade;
};

Result<void> decode(boost::json::object& params, NoParams& out);
Result<void> decode(boost::json::object& params, InitializeParams& out);
Result<void> decode(boost::json::object& params, TemplateParams& out);
Result<void> decode(boost::json::object& params, CreateParams& out);
Result<void> decode(boost::json::object& params, HandleParams& out);
Result<void> decode(boost::json::object& params, PathParams& out);
Result<void> decode(boost::json::object& params, WriteParams& out);
Result<void> decode(boost::json::object& params, RunParams& out);
Result<void> decode(boost::json::object& params, SpawnParams& out);
Result<void> decode(boost::json::object& params, ProcessParams& out);
Result<void> decode(boost::json::object& params, PolicyParams& out);

boost::json::value encode(Done result);
boost::json::value encode(DiscoverResult result);
boost::json::value encode(InitializeResult result);
boost::json::value encode(PrewarmResult result);
boost::json::value encode(SessionState result);
boost::json::value encode(Grade result);
boost::json::value encode(CreateResult result);
boost::json::value encode(PathResult result);
boost::json::value encode(BinaryFile result);
boost::json::value encode(TextFile result);
boost::json::value encode(Written result);
boost::json::value encode(RunResult result);
boost::json::value encode(ProcessStarted result);
boost::json::value encode(ProcessResult result);
boost::json::value encode(PolicyResult result);

}  // namespace stitchkit
