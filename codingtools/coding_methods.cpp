#include "codingtools/coding_methods.h"

#include "codingtools/file_error.h"

#include <utility>
#include <vector>

namespace stitchkit {

namespace {

Error noSuchToolset() {
  return Error(ErrorKind::kNotFound, "There is no such toolset").withHint("coding.create gives one.");
}

Error noSuchTool(std::string_view tool) {
  return Error(ErrorKind::kNotFound, "The toolset does not have this tool")
      .withHint(tool == "run_command" ? "Declare executables with coding.create."
                                      : "Let artifacts be kept with coding.create.");
}

/// What a stop of the session has ended is told as such.
template <class T>
Result<T> settled(const ToolWork& work, Result<T> result) {
  if (!result && result.error().kind == ErrorKind::kCancelled && work.stopped().stop_requested()) {
    return toolSessionStopped();
  }
  return result;
}

template <class Input, class Output>
Result<Output> perform(const Toolset& toolset, const ToolWork& work, const Input& input,
                       Result<Output> (*run)(const ToolContext&, const Input&), std::vector<ReplacedFile>& replaced) {
  const std::stop_token stop = work.ended();
  if (stop.stop_requested()) {
    return fileWorkCancelled();
  }
  return toolset.with(work, replaced, stop, [&](const ToolContext& context) -> Result<Output> {
    if (Result<void> any = context.guard.checkAny(); !any) {
      return std::move(any).error();
    }
    return run(context, input);
  });
}

/// A command that was cancelled has an answer all the same.
Result<RunCommandOutput> reportEnd(const ToolWork& work, const ToolContext& context, const RunCommandInput& input,
                                   const ToolCommandEnd& end) {
  Result<RunCommandOutput> output = settled(work, reportCommand(context, input, end));
  if (!output && output.error().kind == ErrorKind::kCancelled) {
    return unkeptCommand(context, input, end);
  }
  return output;
}

void settle(std::vector<ReplacedFile>& replaced, const ToolWork& work) {
  for (ReplacedFile& each : replaced) {
    each.settle();
  }
  if (!replaced.empty()) {
    work.staging().prepare();
  }
}

}  // namespace

/// One call of `run_command`: prepared where it may wait, run on the loop, reported where it may wait.
struct CodingTools::Running {
  std::shared_ptr<const Toolset> toolset;
  std::shared_ptr<ToolWork> work;
  RunCommandInput input;
  std::function<void(Result<RunCommandOutput>)> reply;
};

void CodingTools::addMethods(MethodTable& table) {
  addCreate(table);
  addDelete(table);
  addReadFile(table);
  addTool<WriteFileInput, WriteFileOutput>(table, "write_file", writeFile, parts_.quick);
  addTool<EditFileInput, EditFileOutput>(table, "edit_file", editFile, parts_.patient);
  addTool<ListDirectoryInput, ListDirectoryOutput>(table, "list_directory", listDirectory, parts_.quick);
  addTool<GlobInput, GlobResult>(table, "glob", globTool, parts_.patient);
  addTool<FileSearch, SearchFilesOutput>(table, "search_files", searchFilesTool, parts_.patient);
  addRunCommand(table);
  addTool<ReadOutputInput, ReadOutputOutput>(table, "read_output", readOutput, parts_.quick);
  addTool<SearchOutputInput, SearchOutputOutput>(table, "search_output", searchOutput, parts_.quick);
}

void CodingTools::addCreate(MethodTable& table) {
  table.add<CreateToolsetParams, CreatedToolset>(
      "coding.create", [this](const CallContext&, CreateToolsetParams params, const Reply<CreatedToolset>& reply) {
        const auto toolset = create(params.handle, std::move(params.rules));
        if (!toolset) {
          reply(toolset.error());
          return;
        }
        reply(CreatedToolset{(*toolset)->id(), toolDefinitions((*toolset)->offer())});
      });
}

Result<std::shared_ptr<const Toolset>> CodingTools::create(const std::string& handle, ToolsetRules rules) {
  Result<std::shared_ptr<ToolSession>> session = parts_.session(handle);
  if (!session) {
    return std::move(session).error();
  }
  letEndedGo();
  std::set<std::string>& names = toolsetsOf_[session->get()];
  if (names.size() >= limits::kToolsets) {
    return Error(ErrorKind::kBusy, "The handle has too many toolsets")
        .withDetail("limit", static_cast<std::int64_t>(limits::kToolsets))
        .withHint("Use one of those that it has, or end some with coding.delete.");
  }
  auto toolset = std::make_shared<const Toolset>(services_, "t" + std::to_string(++lastToolset_), std::move(*session),
                                                 std::move(rules));
  names.insert(toolset->id());
  toolsets_.emplace(toolset->id(), toolset);
  return toolset;
}

void CodingTools::letEndedGo() {
  std::erase_if(toolsetsOf_, [this](const auto& entry) {
    if (!toolsets_.at(*entry.second.begin())->session().stopped()) {
      return false;
    }
    for (const std::string& name : entry.second) {
      const auto toolset = toolsets_.find(name);
      const ToolOffer& offer = toolset->second->offer();
      ended_.emplace(name, Ended{!offer.executables.empty(), offer.keepsOutput});
      toolsets_.erase(toolset);
    }
    return true;
  });
}

void CodingTools::addDelete(MethodTable& table) {
  table.add<DeleteToolsetParams, DeletedToolset>(
      "coding.delete", [this](const CallContext&, const DeleteToolsetParams& params,
                              const Reply<DeletedToolset>& reply) { reply(remove(params.toolset)); });
}

Result<DeletedToolset> CodingTools::remove(const std::string& name) {
  const auto found = toolsets_.find(name);
  if (found == toolsets_.end()) {
    return ended_.erase(name) == 0 ? Result<DeletedToolset>(noSuchToolset()) : DeletedToolset{};
  }
  const auto names = toolsetsOf_.find(&found->second->session());
  names->second.erase(name);
  if (names->second.empty()) {
    toolsetsOf_.erase(names);
  }
  toolsets_.erase(found);
  return DeletedToolset{};
}

// Of a toolset that is not in toolsets_.
Error CodingTools::refusalOf(const std::string& name, std::string_view tool) const {
  const auto ended = ended_.find(name);
  if (ended == ended_.end()) {
    return noSuchToolset();
  }
  ToolOffer offer;
  offer.executables.resize(ended->second.runsCommands ? 1 : 0);
  offer.keepsOutput = ended->second.keepsOutput;
  return offer.has(tool) ? toolSessionStopped() : noSuchTool(tool);
}

Result<CodingTools::Begun> CodingTools::begin(const CallContext& call, const std::string& name,
                                              std::string_view tool) const {
  const auto found = toolsets_.find(name);
  if (found == toolsets_.end()) {
    return refusalOf(name, tool);
  }
  if (!found->second->offer().has(tool)) {
    return noSuchTool(tool);
  }
  // They may wait for answers of the host, which could not be read if reading stopped.
  if (parts_.patient.waitingBytes() >= limits::kQueuedRequestBytes) {
    return Error(ErrorKind::kBusy, "Too many calls of tools wait").withHint("Wait for answers before sending more.");
  }
  auto work = found->second->session().begin(call.cancellation);
  if (!work) {
    return std::move(work).error();
  }
  return Begun{found->second, std::move(*work)};
}

Workers& CodingTools::workersFor(const Toolset& toolset, Workers& usual) const {
  return toolset.asksHost() ? parts_.patient : usual;
}

template <class Input, class Output>
void CodingTools::serve(const Begun& begun, ToolCall<Input> call, Reply<Output> reply, Tool<Input, Output> tool,
                        Workers& usual) const {
  // Answered from the worker, so that the loop need not make the text, and before what nobody waits for; the work is
  // let go on the loop.
  workersFor(*begun.toolset, usual)
      .run(
          Workers::Kind::kRequest, call.bytes,
          [toolset = begun.toolset, &work = *begun.work, input = std::move(call.input), tool,
           reply = std::move(reply)] {
            std::vector<ReplacedFile> replaced;
            reply(settled(work, perform(*toolset, work, input, tool, replaced)));
            settle(replaced, work);
            return true;
          },
          [work = begun.work](bool) {});
}

template <class Input, class Output>
void CodingTools::addTool(MethodTable& table, const char* name, Tool<Input, Output> tool, Workers& usual) {
  table.add<ToolCall<Input>, Output>(
      std::string("coding.") + name,
      [this, name, tool, &usual](const CallContext& call, ToolCall<Input> params, Reply<Output> reply) {
        Result<Begun> begun = begin(call, params.toolset, name);
        if (begun) {
          serve(*begun, std::move(params), std::move(reply), tool, usual);
        } else {
          reply(std::move(begun).error());
        }
      });
}

// A small file in the page cache is read on the loop: a worker's wake-up costs more.
void CodingTools::addReadFile(MethodTable& table) {
  table.add<ToolCall<ReadFileInput>, ReadFileOutput>(
      "coding.read_file", [this](const CallContext& call, ToolCall<ReadFileInput> params, Reply<ReadFileOutput> reply) {
        Result<Begun> begun = begin(call, params.toolset, "read_file");
        if (!begun) {
          reply(std::move(begun).error());
          return;
        }
        if (!begun->toolset->asksHost() && parts_.quick.nothingWaits()) {
          if (auto cached = begun->toolset->with(*begun->work, {}, [&](const ToolContext& context) {
                return readCachedFile(context, params.input);
              })) {
            reply(std::move(*cached));
            return;
          }
        }
        serve<ReadFileInput, ReadFileOutput>(*begun, std::move(params), std::move(reply), readFile, parts_.quick);
      });
}

void CodingTools::addRunCommand(MethodTable& table) {
  table.add<ToolCall<RunCommandInput>, RunCommandOutput>(
      "coding.run_command",
      [this](const CallContext& call, ToolCall<RunCommandInput> params, Reply<RunCommandOutput> reply) {
        Result<Begun> begun = begin(call, params.toolset, "run_command");
        if (!begun) {
          reply(std::move(begun).error());
          return;
        }
        const auto running = std::make_shared<Running>(
            Running{std::move(begun->toolset), std::move(begun->work), std::move(params.input), std::move(reply)});
        prepare(running, params.bytes);
      },
      MethodTable::OnCancel::kAnswers);
}

void CodingTools::prepare(const std::shared_ptr<Running>& running, std::size_t bytes) {
  // Not the shared pointer: its last one has to go on the loop.
  const auto job = [&call = *running] {
    return call.toolset->with(*call.work, call.work->ended(), [&](const ToolContext& context) {
      return prepareCommand(context, call.toolset->rules().shell, call.input);
    });
  };
  if (!running->toolset->asksHost() && running->input.directory == ".") {
    runPrepared(running, job());
    return;
  }
  workersFor(*running->toolset, parts_.quick)
      .run(Workers::Kind::kRequest, bytes, job,
           [this, running](Result<ToolCommand> command) { runPrepared(running, std::move(command)); });
}

void CodingTools::runPrepared(const std::shared_ptr<Running>& running, Result<ToolCommand> command) {
  const ToolWork& work = *running->work;
  if (work.ended().stop_requested()) {
    running->reply(work.stopped().stop_requested() ? Result<RunCommandOutput>(toolSessionStopped())
                                                   : cancelledCommand(running->input));
    return;
  }
  if (!command) {
    running->reply(std::move(command).error());
    return;
  }
  ToolSession& session = running->toolset->session();
  if (Result<void> enforced = checkRestrictions(running->toolset->rules().shell, session.grade()); !enforced) {
    running->reply(std::move(enforced).error());
    return;
  }
  session.run(running->work, std::move(*command),
              [this, running](Result<ToolCommandEnd> end) { report(running, std::move(end)); });
}

void CodingTools::report(const std::shared_ptr<Running>& running, Result<ToolCommandEnd> end) {
  if (!end) {
    running->reply(commandError(std::move(end).error(), running->input));
    return;
  }
  const bool whole =
      running->toolset->with(*running->work, {}, [&](const ToolContext& context) { return fitsWhole(context, *end); });
  const auto job = [&call = *running, ended = std::make_shared<ToolCommandEnd>(std::move(*end))] {
    return call.toolset->with(*call.work, call.work->ended(), [&](const ToolContext& context) {
      return reportEnd(*call.work, context, call.input, *ended);
    });
  };
  if (whole) {
    running->reply(job());
    return;
  }
  workersFor(*running->toolset, parts_.quick)
      .run(Workers::Kind::kInternal, 0, job,
           [running](Result<RunCommandOutput> output) { running->reply(std::move(output)); });
}

}  // namespace stitchkit
