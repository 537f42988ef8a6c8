// Every ceiling of the program in one place, each with its unit and its reason.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stitchkit::limits {

/// Bytes of one inbound message (PROTOCOL.md, 1); --max-message-bytes sets another.
inline constexpr std::size_t kMessageBytes = 16UL * 1024 * 1024;
/// Nested arrays and objects of a message (PROTOCOL.md, 1).
inline constexpr std::size_t kMessageDepth = 64;
/// JSON values in one message. A value costs up to 18 times its text in memory (`[0,0,...]`), so that bytes alone do
/// not bound it; the largest honest message, a template of many files, needs two values a file.
inline constexpr std::size_t kMessageValues = 512UL * 1024;
/// Bytes of the header block of a `Content-Length` frame.
inline constexpr std::size_t kFrameHeaderBytes = 4096;
/// Members of one batch; each may cost an answer.
inline constexpr std::size_t kBatchMembers = 10000;
/// Bytes of a batch's answers, which have to wait for each other in memory. Beyond, an answer of more than
/// kSmallAnswerBytes becomes SANDBOX_LIMIT, reason `batch`.
inline constexpr std::size_t kBatchAnswerBytes = 64UL * 1024 * 1024;
inline constexpr std::size_t kSmallAnswerBytes = 4096;
/// Characters of a name of the caller's that an error repeats: enough to know it again.
inline constexpr std::size_t kEchoedCharacters = 100;
/// Characters of an error's message, and of an issue's path and message, whatever they are made of.
inline constexpr std::size_t kErrorTextCharacters = 1000;
/// Requests that have been read and not answered. Further ones get SANDBOX_BUSY.
inline constexpr std::size_t kRequestsInFlight = 16384;
/// Requests that wait for a worker. At this many, or at this many bytes of them, the sidecar stops reading its input;
/// the work goes on and reading with it.
inline constexpr std::size_t kQueuedRequests = 1024;
inline constexpr std::size_t kQueuedRequestBytes = 32UL * 1024 * 1024;
/// Results of workers that wait for the loop to send them; no request starts while there are more.
inline constexpr std::size_t kUndeliveredResults = 16;
/// Unsent bytes towards the host at which guest output and new work wait (PROTOCOL.md, 1: slow reader).
inline constexpr std::size_t kUnsentBytes = 4UL * 1024 * 1024;

/// Lines of the log at once, and a second after that, where others than the operator decide how many there would be:
/// about refused requests, and, a handle, about what the gateway refused to guests and about what it served them.
/// Further ones are counted.
inline constexpr std::uint32_t kLogBurst = 200;
inline constexpr std::uint32_t kLogLinesPerSecond = 50;
inline constexpr std::uint32_t kLogGatewayBurst = 1000;
inline constexpr std::uint32_t kLogGatewayLinesPerSecond = 200;
/// Handles that `backend.stats` has a row for, the latest ones.
inline constexpr std::size_t kStatsHandles = 256;

/// Bytes of one session file read or written (PROTOCOL.md, 5).
inline constexpr std::size_t kSessionFileBytes = 1024UL * 1024;

/// The largest file in the page cache that is read on the loop itself: larger ones would hold up other answers longer
/// than a worker's wake-up costs.
inline constexpr std::size_t kReadOnLoopBytes = 64UL * 1024;

/// Matches of one search with their context, in bytes: context lines are whole lines, so that few matches may hold
/// much.
inline constexpr std::size_t kSearchResultBytes = 4UL * 1024 * 1024;

/// Toolsets of one handle: hosts make a few, and each is kept as long as the sidecar runs.
inline constexpr std::size_t kToolsets = 256;

/// Searches at once in all sessions; further ones wait. Each may hold kSearchResultBytes, and threads of its own.
inline constexpr std::size_t kSearches = 16;

/// Live commands a handle (PROTOCOL.md, 3).
inline constexpr int kConcurrentCommands = 8;
inline constexpr int kConcurrentCommandsMax = 1024;
/// Launches that wait for a command (backend/launch/warm_launches.h): of one handle unless --warm says otherwise, the
/// most that it may say, and of all handles together. One costs the machine half a MiB to one.
inline constexpr int kWarmLaunchesOfHandle = 4;
inline constexpr int kWarmLaunchesOfHandleMax = 64;
inline constexpr std::size_t kWarmLaunches = 64;
/// Open files that the process makes sure of if it may; and with fewer than these no launch succeeds, nor much else.
inline constexpr std::uint64_t kOpenFiles = 65536;
inline constexpr std::uint64_t kLeastOpenFiles = 64;
/// Open files that are not for launches that wait, whatever the process may open, and how many one takes at most: with
/// a low RLIMIT_NOFILE fewer wait, or none.
inline constexpr std::uint64_t kOpenFilesBesideWarm = 256;
inline constexpr std::uint64_t kOpenFilesOfWarmLaunch = 8;
/// Milliseconds without a command after which a handle has none of them: longer than a model thinks between two,
/// mostly.
inline constexpr std::int64_t kWarmIdleMs = 15000;
/// A command's deadline in milliseconds (PROTOCOL.md, 5).
inline constexpr std::int64_t kCommandTimeoutMs = 30000;
/// A command's output, stdout and stderr together, in bytes (PROTOCOL.md, 5).
inline constexpr std::int64_t kCommandOutputBytes = 1048576;
/// The most a command may ask for: its output is held in memory until it is answered.
inline constexpr std::int64_t kCommandOutputBytesMax = 64LL * 1024 * 1024;
/// Ended processes of `session.spawn` whose result can still be asked for, and the bytes of output they may hold
/// together; the oldest go first.
inline constexpr std::size_t kEndedProcesses = 1024;
inline constexpr std::size_t kEndedProcessBytes = 128UL * 1024 * 1024;
/// Output of a command that is told with its SANDBOX_LIMIT error, in bytes a channel.
inline constexpr std::size_t kLimitedOutputBytes = 64UL * 1024;
/// Guests at work at once for session files whose path holds a symbolic link, a handle; further ones wait.
inline constexpr std::size_t kFileGuests = 2;
/// Processes and threads of a session at once unless `resources.maxProcesses` says otherwise (PROTOCOL.md, 4): a build
/// with many jobs fits, a fork loop ends. Where there is no control group, of each command.
inline constexpr std::uint64_t kSessionProcesses = 512;
/// Size of the guest's /tmp in bytes unless `resources.tmpBytes` says otherwise (PROTOCOL.md, 4).
inline constexpr std::int64_t kTmpBytes = 268435456;

/// A guest's request header: bytes of the whole block, and fields. Node's own ceiling, and more fields than clients
/// send.
inline constexpr std::size_t kGatewayHeaderBytes = 16UL * 1024;
inline constexpr std::size_t kGatewayHeaderFields = 100;
/// A chunk's size line with its extensions, or the trailers, which are read and dropped.
inline constexpr std::size_t kGatewayChunkLineBytes = 4096;
/// An upstream's response header; services send long policies in theirs.
inline constexpr std::size_t kUpstreamHeaderBytes = 64UL * 1024;
/// Bodies, in bytes, unless a rule says otherwise (PROTOCOL.md, 6), and the most that it may say: each is held whole.
inline constexpr std::uint64_t kGatewayBodyBytes = 1024UL * 1024;
inline constexpr std::uint64_t kGatewayBodyBytesMax = 64UL * 1024 * 1024;
/// Requests at once, a handle (PROTOCOL.md, 6).
inline constexpr std::size_t kGatewayRequests = 16;
/// Connections of guests, a handle: those at work and as many again that wait between two requests, and some more.
inline constexpr std::size_t kGatewayConnections = 64;
/// Bytes of request bodies of more than kGatewaySmallBodyBytes that are held at once, a handle; a further one waits
/// unread. A single larger one that its rule allows may have it all.
inline constexpr std::uint64_t kGatewayHeldBodyBytes = 3UL * 1024 * 1024;
inline constexpr std::uint64_t kGatewaySmallBodyBytes = 64UL * 1024;
/// Milliseconds of a request in all, and of its header (PROTOCOL.md, 6).
inline constexpr std::int64_t kGatewayRequestMs = 30000;
inline constexpr std::int64_t kGatewayHeaderMs = 5000;
/// Milliseconds that a guest's connection may lie idle, and after which it makes room for another one when all places
/// are taken; milliseconds and bytes for which one that was refused is read on, so that the guest sees the answer
/// instead of a reset.
inline constexpr std::int64_t kGatewayIdleMs = 15000;
inline constexpr std::int64_t kGatewayIdleGraceMs = 250;
inline constexpr std::int64_t kGatewayLingerMs = 1000;
inline constexpr std::size_t kGatewayLingerBytes = 256UL * 1024;
/// Names that are looked up at once, a handle and gateway thread.
inline constexpr std::size_t kGatewayLookups = 16;
/// Failures that the host is told of: so many at once, and so many a second, a handle. Beyond, requests wait: a guest
/// that makes failures as fast as it can would keep the host from reading anything else.
inline constexpr std::size_t kGatewayFailureBurst = 128;
inline constexpr std::size_t kGatewayFailuresPerSecond = 100;
/// Milliseconds that a connection to an upstream is kept for the next request: less than Node's five seconds, after
/// which a server closes, since a request on a closing connection is lost.
inline constexpr std::int64_t kUpstreamIdleMs = 4000;
/// Idle connections to upstreams, a handle.
inline constexpr std::size_t kUpstreamIdleConnections = 16;

}  // namespace stitchkit::limits
