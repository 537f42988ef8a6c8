// Options and wiring, nothing else: command line, privileges, loop, workers, peer, backend, and how they end.

#include <boost/asio/signal_set.hpp>

#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <system_error>
#include <tuple>

#include "backend/backend.h"
#include "backend/diagnosis/cause.h"
#include "backend/diagnosis/set_up_cause.h"
#include "backend/doctor/doctor.h"
#include "backend/launch/orphan_reaper.h"
#include "backend/methods.h"
#include "backend/privilege/privilege.h"
#include "codingtools/coding_methods.h"
#include "command_line.h"
#include "rpc/asio_loop.h"
#include "rpc/base/log.h"
#include "rpc/base/open_files_limit.h"
#include "rpc/base/standard_streams.h"
#include "rpc/heap_trimmer.h"
#include "rpc/host_requests.h"
#include "rpc/peer.h"
#include "rpc/stdio_transport.h"
#include "rpc/workers.h"

namespace stitchkit {
namespace {

constexpr unsigned kWorkerThreads = 8;
// Tools that wait for the host hold a thread each; what waits for nobody has the workers.
constexpr unsigned kPatientThreads = 128;
constexpr std::chrono::seconds kHostTimeout{30};
constexpr int kExitHostGone = 1;

/// Tells of every answer, by which memory has been used.
class ObservedSink : public MessageSink {
 public:
  ObservedSink(MessageSink& sink, HeapTrimmer& trimmer) : sink_(sink), trimmer_(trimmer) {}
  void send(std::string text) override {
    trimmer_.used();
    sink_.send(std::move(text));
  }

 private:
  MessageSink& sink_;
  HeapTrimmer& trimmer_;
};

/// One run of the sidecar. The members are in the order in which they depend on each other.
class Sidecar {
 public:
  Sidecar(const ServeCommand& line, Privilege privilege, Stdio stdio, std::uint64_t guestOpenFiles)
      : privilege_(std::move(privilege)),
        hostRequests_(
            loop_,
            [this](std::string_view method, const boost::json::object& params, HostRequests::Answer answer) {
              return askHost(method, params, std::move(answer));
            },
            kHostTimeout),
        workers_(loop_, kWorkerThreads),
        patientWorkers_(loop_, kPatientThreads, Workers::Begin::kWhenNeeded),
        transport_(loop_.context(), std::move(stdio), line.framing, line.maxMessageBytes),
        backend_(loop_, workers_, backendConfig(line, guestOpenFiles), hooks()),
        codingTools_({[this](const std::string& handle) { return toolSession(handle); }, workers_, patientWorkers_,
                      hostRequests_}),
        orphans_(loop_.context()),
        signals_(loop_.context(), SIGINT, SIGTERM, SIGHUP) {
    addBackendMethods(
        methods_, backend_,
        {line.maxMessageBytes, [this] { return peer_.get(); }, [this](SidecarStats& stats) { addStats(stats); }});
    codingTools_.addMethods(methods_);
    peer_ = std::make_shared<Peer>(loop_, sink_, methods_, PeerOptions{line.serial});
  }

  int run() {
    workers_.onRelieved([this] { updateReading(); });
    signals_.async_wait([this](boost::system::error_code ec, int) { onSignal(ec); });
    transport_.start({
        [this](FrameEvent event) {
          peer_->onFrame(std::move(event));
          updateReading();
        },
        [this] { onInputEnd(); },
        [this] { abandon(kExitHostGone); },
        [this](bool congested) { onCongestion(congested); },
    });
    loop_.context().run();
    peer_.reset();
    logEvent(LogLevel::kInfo, "ended", {{"exitCode", exitCode_}, {"uptimeMs", millisecondsSince(began_)}});
    return exitCode_;
  }

 private:
  void addStats(SidecarStats& stats) {
    stats.uptimeMs = millisecondsSince(began_);
    stats.requests = peer_->log().counts();
    stats.log = logCounts();
    stats.queues.emplace_back("requests", peer_->requests());
    stats.queues.emplace_back("unsentBytes", transport_.unsentBytes());
    const Workers::Queues workers = workers_.queues();
    stats.queues.emplace_back("workerRequests", workers.requests);
    stats.queues.emplace_back("workerRequestBytes", workers.bytes);
    stats.queues.emplace_back("patientRequestBytes", patientWorkers_.queues().bytes);
  }

  BackendConfig backendConfig(const ServeCommand& line, std::uint64_t guestOpenFiles) const {
    BackendConfig config;
    config.stateDirectory = privilege_.stateDirectory;
    config.name = line.name;
    config.bubblewrap = line.bubblewrap;
    config.maxConcurrentCommands = line.maxConcurrentCommands;
    config.warmLaunches = line.warmLaunches;
    config.durability = line.durability;
    config.gateway = line.gateway;
    config.softOpenFiles = guestOpenFiles;
    config.staysRoot = privilege_.stayedRoot;
    config.cgroups = privilege_.cgroups;
    return config;
  }

  Backend::Hooks hooks() {
    return {[this](const std::string& directory) { return privilege_.steward.handOver(directory); },
            [this](std::vector<std::string> cgroups) -> Result<std::shared_ptr<Warden>> {
              privilege_.steward.dismiss();
              Result<Warden> warden = Warden::start(std::move(cgroups));
              if (!warden) {
                return std::move(warden).error();
              }
              return std::make_shared<Warden>(std::move(*warden));
            },
            [this](const std::string& handle, const GatewayFailure& failure) {
              if (peer_) {
                tellGatewayFailure(*peer_, handle, failure);
              }
            }};
  }

  std::function<void()> askHost(std::string_view method, const boost::json::object& params,
                                HostRequests::Answer answer) {
    return [peer = std::weak_ptr(peer_), call = peer_->callHost(method, params, std::move(answer))] {
      if (const auto live = peer.lock()) {
        live->forgetCall(call);
      }
    };
  }

  Result<std::shared_ptr<ToolSession>> toolSession(const std::string& id) {
    Result<std::shared_ptr<SessionHandle>> handle = backend_.handle(id);
    if (!handle) {
      return std::move(handle).error();
    }
    if (Result<void> usable = (*handle)->usable(); !usable) {
      return std::move(usable).error();
    }
    return (*handle)->tools();
  }

  // However many tools wait for the host: its answers have to be read.
  void updateReading() { transport_.setReading(!congested_ && !workers_.congested()); }

  // The host does not read: nothing new is read or begun, and guests wait in their pipes (PROTOCOL.md, 1).
  void onCongestion(bool congested) {
    congested_ = congested;
    workers_.holdRequests(congested);
    patientWorkers_.holdRequests(congested);
    backend_.setOutputPaused(congested);
    updateReading();
  }

  // What is in flight goes on, but whoever waits for an answer of the host waits in vain.
  void onInputEnd() {
    peer_->answersEnded();
    peer_->whenIdle([this] { finish(0); });
  }

  void onSignal(boost::system::error_code ec) {
    if (ec) {
      return;
    }
    // A second signal means now: what is left of guests dies with us.
    signals_.async_wait([](boost::system::error_code again, int) {
      if (!again) {
        std::_Exit(kExitHostGone);
      }
    });
    abandon(0);
  }

  // Nothing is waited for but the guests' ends and the leases.
  void abandon(int exitCode) {
    workers_.holdRequests(false);
    patientWorkers_.holdRequests(false);
    peer_->abandon();
    finish(exitCode);
  }

  void finish(int exitCode) {
    exitCode_ = std::max(exitCode_, exitCode);
    if (finishing_) {
      return;
    }
    finishing_ = true;
    transport_.setReading(false);
    backend_.stopAll([this] { transport_.whenFlushed([this] { loop_.context().stop(); }); });
  }

  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  Privilege privilege_;
  AsioLoop loop_;
  HostRequests hostRequests_;
  Workers workers_;
  Workers patientWorkers_;
  StdioTransport transport_;
  HeapTrimmer trimmer_{loop_.context()};
  ObservedSink sink_{transport_, trimmer_};
  Backend backend_;
  CodingTools codingTools_;
  OrphanReaper orphans_;
  boost::asio::signal_set signals_;
  MethodTable methods_;
  std::shared_ptr<Peer> peer_;
  bool congested_ = false;
  bool finishing_ = false;
  int exitCode_ = 0;
};

// A message of a megabyte passes through several buffers. Taken from the kernel anew each time, their page faults cost
// eight times the work itself, so some freed memory is kept; and an arena a worker would cost more than it saves.
void keepFreedMemory() {
  constexpr int kKeptBytes = 32 * 1024 * 1024;
  ::mallopt(M_ARENA_MAX, 2);
  ::mallopt(M_MMAP_THRESHOLD, kKeptBytes);
  ::mallopt(M_TRIM_THRESHOLD, kKeptBytes);
}

int cannotStart(const Error& error) {
  logEvent(LogLevel::kError, "cannot-start",
           {{"message", error.message + (error.privateDetail.empty() ? "" : ": " + error.privateDetail) +
                            (error.hint.empty() ? "" : ". " + error.hint)}});
  return EXIT_FAILURE;
}

// Whoever names a place expects limits to be had there.
void warnOfNoGroups(const CgroupRequest& request, const CgroupDelegation& groups) {
  const bool none =
      std::none_of(groups.bases.begin(), groups.bases.end(), [](const auto& base) { return base.has_value(); });
  if (request.path && !request.off && none) {
    logEvent(LogLevel::kWarning, "no-control-groups", {{"path", *request.path}, {"message", groups.note}});
  }
}

int serve(const ServeCommand& line) {
  setLogLevel(line.logLevel);
  setLogFormat(line.logFormat);
  std::ignore = std::signal(SIGPIPE, SIG_IGN);
  std::ignore = std::signal(SIGXFSZ, SIG_IGN);  // a log that may grow no more is no reason to end
  ::umask(022);
  keepFreedMemory();
  const std::optional<std::uint64_t> formerOpenFiles = raiseOpenFilesLimit();
  if (!formerOpenFiles) {
    return cannotStart(unavailableBecause("The sidecar could not be started", Cause::kOpenFilesLimited));
  }
  Stdio stdio = takeStdio();
  Result<Privilege> privilege = settlePrivilege(line.privilege);
  if (!privilege) {
    return cannotStart(privilege.error());
  }
  if (!privilege->note.empty()) {
    logLine(LogLevel::kInfo, privilege->note);
  }
  warnOfNoGroups(line.privilege.cgroups, *privilege->cgroups);
  if (Result<void> readable = line.gateway.caFile.empty() ? Result<void>() : checkCaFile(line.gateway.caFile);
      !readable) {
    return cannotStart(readable.error());
  }
  logEvent(LogLevel::kInfo, "started",
           {{"version", STITCHKIT_VERSION}, {"pid", ::getpid()}, {"stateDirectory", privilege->stateDirectory}});
  std::unique_ptr<Sidecar> sidecar;
  try {
    sidecar = std::make_unique<Sidecar>(line, std::move(*privilege), std::move(stdio), *formerOpenFiles);
  } catch (const std::system_error& failure) {
    return cannotStart(unavailableBecause("The sidecar could not be started", causeOfSpawn(failure.code().value()))
                           .withPrivate(failure.what()));
  }
  return sidecar->run();
}

}  // namespace
}  // namespace stitchkit

int main(int argc, char** argv) {
  const stitchkit::CommandLineResult asked = stitchkit::parseCommandLine(argc, argv);
  if (const auto* command = std::get_if<stitchkit::ServeCommand>(&asked.command)) {
    return stitchkit::serve(*command);
  }
  stitchkit::holdStandardStreams();
  if (const auto* plan = std::get_if<stitchkit::DoctorPlan>(&asked.command)) {
    return stitchkit::runDoctor(*plan);
  }
  if (const auto* plan = std::get_if<stitchkit::GcPlan>(&asked.command)) {
    return stitchkit::runGc(*plan);
  }
  std::cerr << asked.standardError;
  return stitchkit::writeStandardOutput(asked.standardOutput) ? asked.exitCode : EXIT_FAILURE;
}
