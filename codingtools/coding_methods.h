// The methods of PROTOCOL.md, section 7, by name.
#pragma once

#include "codingtools/coding_requests.h"
#include "codingtools/toolset.h"
#include "rpc/base/limits.h"
#include "rpc/host_requests.h"
#include "rpc/method_table.h"
#include "rpc/workers.h"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

namespace stitchkit {

/// The toolsets of all sessions, by their names t1, t2, ... Loop-thread only. Must outlive every call.
class CodingTools {
 public:
  struct Parts {
    /// The session of a handle; NOT_FOUND, SANDBOX_STOPPED.
    std::function<Result<std::shared_ptr<ToolSession>>(const std::string& handle)> session;
    Workers& quick;    ///< for calls that wait for nothing but the disk
    Workers& patient;  ///< for those that may wait for the host, for each other, or search long
    const HostRequests& host;
  };

  explicit CodingTools(Parts parts)
      : parts_(std::move(parts)), services_{parts_.host, {}, {}, Slots(limits::kSearches)} {}

  void addMethods(MethodTable& table);

 private:
  /// A call that may go on.
  struct Begun {
    std::shared_ptr<const Toolset> toolset;
    std::shared_ptr<ToolWork> work;
  };
  struct Running;
  /// Of a toolset whose session has stopped: which of the tools that it may lack it had.
  struct Ended {
    bool runsCommands = false;
    bool keepsOutput = false;
  };
  template <class Input, class Output>
  using Tool = Result<Output> (*)(const ToolContext&, const Input&);

  Result<std::shared_ptr<const Toolset>> create(const std::string& handle, ToolsetRules rules);
  /// Calls under way go on.
  Result<DeletedToolset> remove(const std::string& name);
  /// NOT_FOUND for a name that was never given, and for a tool that the toolset does not have; SANDBOX_BUSY when too
  /// much waits.
  Result<Begun> begin(const CallContext& call, const std::string& name, std::string_view tool) const;
  /// Keeps of toolsets whose session has stopped what answers about them need.
  void letEndedGo();
  [[nodiscard]] Error refusalOf(const std::string& name, std::string_view tool) const;
  [[nodiscard]] Workers& workersFor(const Toolset& toolset, Workers& usual) const;
  template <class Input, class Output>
  void serve(const Begun& begun, ToolCall<Input> call, Reply<Output> reply, Tool<Input, Output> tool,
             Workers& usual) const;

  void addCreate(MethodTable& table);
  void addDelete(MethodTable& table);
  template <class Input, class Output>
  void addTool(MethodTable& table, const char* name, Tool<Input, Output> tool, Workers& usual);
  void addReadFile(MethodTable& table);
  void addRunCommand(MethodTable& table);
  void prepare(const std::shared_ptr<Running>& running, std::size_t bytes);
  void runPrepared(const std::shared_ptr<Running>& running, Result<ToolCommand> command);
  void report(const std::shared_ptr<Running>& running, Result<ToolCommandEnd> end);

  Parts parts_;
  ToolServices services_;
  std::map<std::string, std::shared_ptr<const Toolset>, std::less<>> toolsets_;
  std::map<const ToolSession*, std::set<std::string>> toolsetsOf_;  ///< names in toolsets_, one at least
  std::map<std::string, Ended, std::less<>> ended_;                 ///< not in toolsets_ any more
  std::size_t lastToolset_ = 0;
};

}  // namespace stitchkit
