#include "backend/methods.h"

#include <boost/json/object.hpp>

#include <algorithm>
#include <utility>

#include "rpc/base/base64.h"
#include "rpc/base/limits.h"
#include "rpc/base/log.h"
#include "rpc/base/utf8.h"
#include "rpc/peer.h"
#include "rpc/wire_error.h"

namespace stitchkit {
namespace {

namespace json = boost::json;

// Answers with the error unless the handle is there and live.
template <class T>
std::shared_ptr<SessionHandle> liveHandle(Backend& backend, const std::string& id, const Reply<T>& reply) {
  Result<std::shared_ptr<SessionHandle>> handle = backend.handle(id);
  if (!handle) {
    reply(std::move(handle).error());
    return nullptr;
  }
  if (Result<void> usable = (*handle)->usable(); !usable) {
    reply(std::move(usable).error());
    return nullptr;
  }
  return std::move(*handle);
}

std::string head(const std::string& bytes) {
  return toUtf8(bytes.substr(0, limits::kLimitedOutputBytes));
}

Error cancelledError() {
  return Error(ErrorKind::kCancelled, "The request was cancelled");
}

// How a command ended, when that is not a result.
Result<void> endError(const GuestOutcome& outcome) {
  const auto limit = [&](const char* message, const char* reason) {
    Error error = Error(ErrorKind::kLimit, message)
                      .withReason(reason)
                      .withDetail("stdout", head(outcome.standardOutput))
                      .withDetail("stderr", head(outcome.standardError));
    return outcome.resource.empty() ? error : std::move(error).withDetail("resource", outcome.resource);
  };
  switch (outcome.cause) {
    case EndCause::kExited:
    case EndCause::kStopped:
      return {};
    case EndCause::kCancelled:
      return cancelledError();
    case EndCause::kDeadline:
      return limit("The command did not end in time", "deadline").withHint("Give it a larger timeoutMs.");
    case EndCause::kOutputBudget:
      return limit("The command wrote more than it may", "output-budget")
          .withHint("Give it a larger maxOutputBytes, or write to a file.");
  }
  return {};
}

void addLifecycle(MethodTable& table, Backend& backend, const MethodSettings& settings) {
  table.add<InitializeParams, InitializeResult>(
      "initialize",
      [&backend, settings](const CallContext&, const InitializeParams& params, const Reply<InitializeResult>& reply) {
        Result<BackendConfig> config = backend.initialize(params);
        if (!config) {
          reply(std::move(config).error());
          return;
        }
        reply(InitializeResult{config->name, static_cast<std::int64_t>(settings.maxMessageBytes),
                               config->maxConcurrentCommands});
      });
  table.add<NoParams, DiscoverResult>(
      "rpc.discover",
      [](const CallContext&, NoParams, const Reply<DiscoverResult>& reply) { reply(DiscoverResult{}); });
  table.add<NoParams, Done>("shutdown", [&backend](const CallContext&, NoParams, const Reply<Done>& reply) {
    backend.stopAll([reply] { reply(Done{}); });
  });
  table.add<NoParams, SidecarStats>(
      "backend.stats", [&backend, settings](const CallContext&, NoParams, const Reply<SidecarStats>& reply) {
        SidecarStats stats;
        stats.process = processUse();
        backend.addStats(stats);
        if (settings.addStats) {
          settings.addStats(stats);
        }
        reply(std::move(stats));
      });
  table.add<TemplateParams, PrewarmResult>(
      "backend.prewarm", [&backend](const CallContext& call, TemplateParams params, Reply<PrewarmResult> reply) {
        backend.prewarm(std::move(params), call.cancellation, std::move(reply));
      });
  table.add<CreateParams, CreateResult>(
      "backend.create", [&backend](const CallContext& call, CreateParams params, Reply<CreateResult> reply) {
        backend.create(std::move(params), call.cancellation, std::move(reply));
      });
}

void addHandleMethods(MethodTable& table, Backend& backend) {
  table.add<HandleParams, SessionState>(
      "handle.captureState",
      [&backend](const CallContext&, const HandleParams& params, const Reply<SessionState>& reply) {
        const auto handle = backend.handle(params.handle);
        reply(handle ? (*handle)->captureState() : Result<SessionState>(handle.error()));
      });
  table.add<HandleParams, Grade>("handle.probe",
                                 [&backend](const CallContext&, const HandleParams& params, const Reply<Grade>& reply) {
                                   if (const auto handle = liveHandle(backend, params.handle, reply)) {
                                     handle->probe(reply);
                                   }
                                 });
  for (const char* name : {"handle.stop", "handle.shutdown", "handle.delete"}) {
    const bool removal = std::string_view(name) == "handle.delete";
    table.add<HandleParams, Done>(
        name, [&backend, removal](const CallContext&, const HandleParams& params, const Reply<Done>& reply) {
          const auto handle = backend.handle(params.handle);
          if (!handle) {
            reply(handle.error());
            return;
          }
          const auto done = [reply](const Result<void>& result) {
            reply(result ? Result<Done>(Done{}) : Result<Done>(result.error()));
          };
          removal ? (*handle)->remove(done) : (*handle)->stop(done);
        });
  }
  table.add<PolicyParams, PolicyResult>(
      "session.setNetworkPolicy",
      [&backend](const CallContext&, const PolicyParams& params, const Reply<PolicyResult>& reply) {
        const auto handle = liveHandle(backend, params.handle, reply);
        if (!handle) {
          return;
        }
        handle->setNetworkPolicy(params.network, [reply](Result<Grade> grade) {
          reply(grade ? Result<PolicyResult>(PolicyResult{std::move(*grade)})
                      : Result<PolicyResult>(std::move(grade).error()));
        });
      });
}

// A result of the file engine as a method's result.
template <class T, class Make>
auto answer(Reply<T> reply, Make make) {
  return [reply = std::move(reply), make = std::move(make)](auto result) {
    if (!result) {
      reply(std::move(result).error());
    } else {
      reply(make(result));
    }
  };
}

void addReads(MethodTable& table, Backend& backend) {
  // Needs no live session: a stopped handle still says what a path means.
  table.add<PathParams, PathResult>(
      "session.resolvePath", [&backend](const CallContext&, const PathParams& params, const Reply<PathResult>& reply) {
        const auto handle = backend.handle(params.handle);
        reply(handle ? Result<PathResult>(PathResult{params.path.canonical()}) : Result<PathResult>(handle.error()));
      });
  table.add<PathParams, BinaryFile>(
      "session.readBinaryFile",
      [&backend](const CallContext& call, const PathParams& params, const Reply<BinaryFile>& reply) {
        if (const auto handle = liveHandle(backend, params.handle, reply)) {
          handle->files().read(params.path, call.cancellation,
                               answer(reply, [](auto& bytes) { return BinaryFile{std::move(*bytes)}; }));
        }
      });
  table.add<PathParams, TextFile>("session.readTextFile", [&backend](const CallContext& call, const PathParams& params,
                                                                     const Reply<TextFile>& reply) {
    const auto handle = liveHandle(backend, params.handle, reply);
    if (!handle) {
      return;
    }
    handle->files().read(params.path, call.cancellation, answer(reply, [](auto& bytes) -> Result<TextFile> {
                           if (!isUtf8(*bytes)) {
                             return Error(ErrorKind::kBadRequest, "The file is not UTF-8 text")
                                 .withDetail("reason", "invalid_utf8")
                                 .withHint("Read it with session.readBinaryFile.");
                           }
                           return TextFile{std::move(*bytes)};
                         }));
  });
}

void addWrites(MethodTable& table, Backend& backend) {
  for (const char* name : {"session.writeBinaryFile", "session.writeTextFile"}) {
    table.add<WriteParams, Written>(
        name, [&backend](const CallContext& call, WriteParams params, const Reply<Written>& reply) {
          const auto handle = liveHandle(backend, params.handle, reply);
          if (!handle) {
            return;
          }
          const auto size = static_cast<std::int64_t>(params.bytes.size());
          if (params.bytes.size() > limits::kSessionFileBytes) {
            reply(Error(ErrorKind::kLimit, "The content is too large")
                      .withDetail("bytes", size)
                      .withDetail("limit", static_cast<std::int64_t>(limits::kSessionFileBytes)));
            return;
          }
          handle->files().write(params.path, std::move(params.bytes), call.cancellation,
                                answer(reply, [size](auto&) { return Written{size}; }));
        });
  }
  table.add<PathParams, Done>(
      "session.removePath", [&backend](const CallContext& call, const PathParams& params, const Reply<Done>& reply) {
        if (const auto handle = liveHandle(backend, params.handle, reply)) {
          handle->files().remove(params.path, call.cancellation, answer(reply, [](auto&) { return Done{}; }));
        }
      });
}

void addRun(MethodTable& table, Backend& backend) {
  table.add<RunParams, RunResult>(
      "session.run", [&backend](const CallContext& call, RunParams params, const Reply<RunResult>& reply) {
        const auto handle = backend.handle(params.handle);
        if (!handle) {
          reply(handle.error());
          return;
        }
        auto guest = (*handle)->start(
            CommandKind::kRun, std::move(params.command), std::move(params.standardInput), {},
            [reply, base64 = params.base64](Result<GuestOutcome> outcome) {
              if (!outcome) {
                reply(std::move(outcome).error());
              } else if (Result<void> end = endError(*outcome); !end) {
                reply(std::move(end).error());
              } else {
                reply(RunResult{outcome->exitCode, std::move(outcome->standardOutput),
                                std::move(outcome->standardError), std::move(outcome->resource), base64});
              }
            });
        if (!guest) {
          reply(std::move(guest).error());
          return;
        }
        call.cancellation->onCancel([weak = std::weak_ptr(*guest)] {
          if (const auto live = weak.lock()) {
            live->kill(EndCause::kCancelled);
          }
        });
      });
}

// One session.spawn: it gets its name when the program runs, so that names are given to what exists only.
struct Spawning {
  std::shared_ptr<Guest> guest;
  std::shared_ptr<SpawnedProcess> process;
  bool cancelled = false;  // before it had a name: answered when nothing of it is left, and its output is nobody's
};

void streamOutput(Peer* peer, const SpawnedProcess& process, OutputChannel channel, std::string_view bytes) {
  if (peer != nullptr) {
    peer->notifyHost("process.output", {{"process", process.id()},
                                        {"channel", channel == OutputChannel::kStdout ? "stdout" : "stderr"},
                                        {"base64", encodeBase64(bytes)}});
  }
}

void addSpawn(MethodTable& table, Backend& backend, const MethodSettings& settings) {
  table.add<SpawnParams, ProcessStarted>(
      "session.spawn",
      [&backend, settings](const CallContext& call, SpawnParams params, const Reply<ProcessStarted>& reply) {
        const auto handle = backend.handle(params.handle);
        if (!handle) {
          reply(handle.error());
          return;
        }
        auto spawning = std::make_shared<Spawning>();
        GuestOptions options;
        options.onStarted = [&backend, spawning, reply, handleId = params.handle,
                             cancellation = call.cancellation](Result<void> started) {
          if (!started) {
            reply(std::move(started).error());
            return;
          }
          if (cancellation->cancelled()) {
            spawning->cancelled = true;
            return;
          }
          spawning->process = backend.processes().add(handleId, spawning->guest);
          reply(ProcessStarted{spawning->process->id()});
        };
        if (params.stream) {
          options.onOutput = [settings, spawning](OutputChannel channel, std::string_view bytes) {
            if (spawning->process) {
              streamOutput(settings.peer(), *spawning->process, channel, bytes);
            }
          };
        }
        const auto completion = [&backend, settings, spawning, reply,
                                 stream = params.stream](Result<GuestOutcome> outcome) {
          spawning->guest.reset();
          if (spawning->cancelled) {
            reply(cancelledError());
          }
          if (!spawning->process) {
            return;
          }
          if (Peer* peer = settings.peer(); stream && outcome && peer != nullptr) {
            peer->notifyHost("process.exit", {{"process", spawning->process->id()}, {"exitCode", outcome->exitCode}});
          }
          backend.processes().ended(spawning->process, std::move(outcome));
        };
        auto guest = (*handle)->start(CommandKind::kSpawn, std::move(params.command), std::move(params.standardInput),
                                      std::move(options), completion);
        if (!guest) {
          reply(std::move(guest).error());
          return;
        }
        spawning->guest = *guest;
        call.cancellation->onCancel([weak = std::weak_ptr(*guest)] {
          if (const auto live = weak.lock()) {
            live->kill(EndCause::kCancelled);
          }
        });
      });
}

// Waits for a process's end unless the request is cancelled first; then the process goes on.
template <class T>
void whenEnded(SpawnedProcess& process, const CallContext& call, const Reply<T>& reply,
               std::function<void(const Result<GuestOutcome>&)> then) {
  auto open = std::make_shared<bool>(true);
  process.whenEnded([open, then = std::move(then)](const Result<GuestOutcome>& outcome) {
    if (std::exchange(*open, false)) {
      then(outcome);
    }
  });
  call.cancellation->onCancel([open, reply] {
    if (std::exchange(*open, false)) {
      reply(cancelledError());
    }
  });
}

void addProcessMethods(MethodTable& table, Backend& backend) {
  table.add<ProcessParams, ProcessResult>(
      "process.result",
      [&backend](const CallContext& call, const ProcessParams& params, const Reply<ProcessResult>& reply) {
        const auto process = backend.processes().find(params.process);
        if (!process) {
          reply(process.error());
          return;
        }
        whenEnded(**process, call, reply, [reply](const Result<GuestOutcome>& outcome) {
          if (!outcome) {
            reply(outcome.error());
          } else if (Result<void> end = endError(*outcome); !end) {
            reply(std::move(end).error());
          } else {
            reply(ProcessResult{outcome->exitCode, outcome->standardOutput, outcome->standardError, outcome->resource});
          }
        });
      });
  table.add<ProcessParams, Done>(
      "process.stop", [&backend](const CallContext& call, const ProcessParams& params, const Reply<Done>& reply) {
        const auto process = backend.processes().find(params.process);
        if (!process) {
          reply(process.error());
          return;
        }
        (*process)->stop();
        whenEnded(**process, call, reply, [reply](const Result<GuestOutcome>&) { reply(Done{}); });
      });
}

}  // namespace

void tellGatewayFailure(Peer& peer, const std::string& handle, const GatewayFailure& failure) {
  const Error& error = failure.error;
  if (!error.privateDetail.empty()) {
    logEvent(LogLevel::kInfo, "gateway-error",
             {{"handle", handle},
              {"origin", failure.origin},
              {"code", wireCode(error.kind).name},
              {"message", error.message + ": " + error.privateDetail}});
  }
  peer.notifyHost("gateway.error", {{"handle", handle},
                                    {"code", wireCode(error.kind).name},
                                    {"message", error.hint.empty() ? error.message : error.message + ". " + error.hint},
                                    {"origin", failure.origin}});
}

void addBackendMethods(MethodTable& table, Backend& backend, MethodSettings settings) {
  table.setGate([&backend] { return backend.open(); });
  addLifecycle(table, backend, settings);
  addHandleMethods(table, backend);
  addReads(table, backend);
  addWrites(table, backend);
  addRun(table, backend);
  addSpawn(table, backend, settings);
  addProcessMethods(table, backend);
}

}  // namespace stitchkit
