// The transport over real descriptors, and taking over the process's own.
#include "rpc/stdio.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "rpc/asio_loop.h"
#include "rpc/base/limits.h"
#include "rpc/stdio_transport.h"

namespace stitchkit {
namespace {

struct Pair {
  UniqueFd reading;
  UniqueFd writing;
};

Pair makePipe() {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Pair makeSockets() {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

UniqueFd makeFile(const std::string& content = {}) {
  char name[] = "/tmp/stitchkit-stdio-XXXXXX";
  UniqueFd file(::mkostemp(name, O_CLOEXEC));
  REQUIRE(file.valid());
  ::unlink(name);
  REQUIRE(::write(file.get(), content.data(), content.size()) == static_cast<ssize_t>(content.size()));
  REQUIRE(::lseek(file.get(), 0, SEEK_SET) == 0);
  return file;
}

void writeAll(const UniqueFd& fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd.get(), bytes.data(), bytes.size());
    REQUIRE(count > 0);
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

/// What can be read now, without waiting.
std::string readNow(const UniqueFd& fd, std::size_t most = SIZE_MAX) {
  std::string text;
  char buffer[65536];
  pollfd ready{fd.get(), POLLIN, 0};
  while (text.size() < most && ::poll(&ready, 1, 0) == 1 && (ready.revents & POLLIN) != 0) {
    const ssize_t count = ::read(fd.get(), buffer, std::min(sizeof buffer, most - text.size()));
    if (count <= 0) {
      break;
    }
    text.append(buffer, static_cast<std::size_t>(count));
  }
  return text;
}

int flagsOf(const UniqueFd& fd) {
  return ::fcntl(fd.get(), F_GETFL);
}

/// Runs with other descriptors as 0 and 1 (-1: closed), and puts the test's own back.
class StandardStreams {
 public:
  StandardStreams(int input, int output) {
    for (int number = 0; number < 3; ++number) {
      saved_[number].reset(::fcntl(number, F_DUPFD_CLOEXEC, 10));
    }
    place(input, 0);
    place(output, 1);
  }
  ~StandardStreams() {
    for (int number = 0; number < 3; ++number) {
      ::dup2(saved_[number].get(), number);
    }
  }
  StandardStreams(const StandardStreams&) = delete;
  StandardStreams& operator=(const StandardStreams&) = delete;

 private:
  static void place(int fd, int number) {
    if (fd < 0) {
      ::close(number);
    } else {
      ::dup2(fd, number);
    }
  }
  UniqueFd saved_[3];
};

Stdio takeFrom(int input, int output) {
  const StandardStreams streams(input, output);
  return takeStdio();
}

/// A transport whose events are kept, driven until something has happened.
class Wire {
 public:
  Wire(Stdio stdio, Framing framing = Framing::kAuto)
      : transport(loop.context(), std::move(stdio), framing, limits::kMessageBytes) {
    ::signal(SIGPIPE, SIG_IGN);  // as main does
  }

  void start() {
    transport.start({
        [this](FrameEvent event) { frames.push_back(std::move(event.text)); },
        [this] { ++inputEnds; },
        [this] { ++outputGone; },
        [this](bool congested) { congestion.push_back(congested); },
    });
  }
  /// Runs the loop until `ready()`.
  template <class Ready>
  void until(Ready ready) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!ready()) {
      if (std::chrono::steady_clock::now() > deadline) {
        throw std::runtime_error("the awaited event did not come in 30 s");
      }
      loop.context().restart();
      loop.context().run_one_for(std::chrono::milliseconds(5));
    }
  }
  /// Runs what is ready now.
  void settle() {
    loop.context().restart();
    while (loop.context().poll() != 0) {
    }
  }

  AsioLoop loop;
  std::vector<std::string> frames;
  int inputEnds = 0;
  int outputGone = 0;
  std::vector<bool> congestion;
  StdioTransport transport;
};

using Strings = std::vector<std::string>;

}  // namespace

TEST_CASE("stdio: pipes are taken without changing their descriptions", "[stdio]") {
  Pair in = makePipe();
  Pair out = makePipe();
  const int inFlags = flagsOf(in.reading);
  const int outFlags = flagsOf(out.writing);
  Stdio stdio = takeFrom(in.reading.get(), out.writing.get());
  CHECK(stdio.input.pollable);
  CHECK(stdio.output.pollable);
  Wire wire(std::move(stdio));
  wire.start();
  writeAll(in.writing, "{\"a\":1}\n");
  wire.until([&] { return wire.frames.size() == 1; });
  wire.transport.send("{\"b\":2}");
  std::string heard;
  wire.until([&] { return (heard += readNow(out.reading)).size() >= 8; });
  CHECK(heard == "{\"b\":2}\n");
  // What other processes share with us is as it was; ours does not block.
  CHECK(flagsOf(in.reading) == inFlags);
  CHECK(flagsOf(in.writing) == (inFlags | O_WRONLY));
  CHECK(flagsOf(out.writing) == outFlags);
  CHECK((flagsOf(out.writing) & O_NONBLOCK) == 0);
}

TEST_CASE("stdio: afterwards 0 is empty and 1 is stderr", "[stdio]") {
  Pair in = makePipe();
  Pair out = makePipe();
  Pair log = makePipe();
  writeAll(in.writing, "secret");
  Stdio stdio;
  ssize_t readCount = -1;
  ssize_t writeCount = -1;
  {
    const StandardStreams streams(in.reading.get(), out.writing.get());
    ::dup2(log.writing.get(), STDERR_FILENO);
    stdio = takeStdio();
    char byte = 0;
    readCount = ::read(STDIN_FILENO, &byte, 1);
    writeCount = ::write(STDOUT_FILENO, "stray", 5);
  }
  CHECK(readCount == 0);
  CHECK(writeCount == 5);
  CHECK(readNow(log.reading) == "stray");
  CHECK(readNow(out.reading).empty());
  for (const UniqueFd* fd : {&stdio.input.fd, &stdio.output.fd}) {
    CHECK(fd->get() > 2);
    CHECK((::fcntl(fd->get(), F_GETFD) & FD_CLOEXEC) != 0);
  }
}

TEST_CASE("stdio: streams that were closed", "[stdio]") {
  // What is seen is judged afterwards: meanwhile a failure could not be printed.
  struct Seen {
    Stdio stdio;
    bool standardOpen[3];
  };
  const auto take = [](int input, int output, bool closeError) {
    const StandardStreams streams(input, output);
    if (closeError) {
      ::close(STDERR_FILENO);
    }
    Seen seen{takeStdio(), {}};
    for (int number = 0; number < 3; ++number) {
      seen.standardOpen[number] = ::fcntl(number, F_GETFD) >= 0;
    }
    return seen;
  };
  Pair in = makePipe();
  Pair out = makePipe();
  for (const bool closeError : {false, true}) {
    const Seen noInput = take(-1, out.writing.get(), closeError);
    CHECK_FALSE(noInput.stdio.input.fd.valid());
    REQUIRE(noInput.stdio.output.fd.get() > 2);
    CHECK(noInput.stdio.output.pollable);
    CHECK(::write(noInput.stdio.output.fd.get(), "x", 1) == 1);
    CHECK(readNow(out.reading) == "x");
    const Seen noOutput = take(in.reading.get(), -1, closeError);
    CHECK(noOutput.stdio.input.fd.get() > 2);
    CHECK(noOutput.stdio.input.pollable);
    CHECK_FALSE(noOutput.stdio.output.fd.valid());
    const Seen none = take(-1, -1, closeError);
    CHECK_FALSE(none.stdio.input.fd.valid());
    CHECK_FALSE(none.stdio.output.fd.valid());
    for (const Seen* seen : {&noInput, &noOutput, &none}) {
      for (const bool open : seen->standardOpen) {
        CHECK(open);  // or the next file would become stdin, stdout or stderr
      }
    }
  }
}

TEST_CASE("transport: closed streams are an ended input and an output that is gone", "[transport]") {
  Wire wire(Stdio{});
  wire.start();
  wire.until([&] { return wire.inputEnds == 1 && wire.outputGone == 1; });
  wire.transport.send("{}");
  bool flushed = false;
  wire.transport.whenFlushed([&] { flushed = true; });
  CHECK(flushed);
  wire.settle();
  CHECK(wire.outputGone == 1);
  CHECK(wire.inputEnds == 1);
}

TEST_CASE("transport: a conversation over pipes and over sockets", "[transport]") {
  for (const bool sockets : {false, true}) {
    INFO("sockets " << sockets);
    Pair in = sockets ? makeSockets() : makePipe();
    Pair out = sockets ? makeSockets() : makePipe();
    Stdio stdio = takeFrom(in.reading.get(), out.writing.get());
    in.reading.reset();
    out.writing.reset();
    Wire wire(std::move(stdio));
    wire.start();
    writeAll(in.writing, "{\"a\":1}\n{\"b\"");
    wire.until([&] { return wire.frames.size() == 1; });
    writeAll(in.writing, ":2}\r\n\n[3]");
    in.writing.reset();
    wire.until([&] { return wire.inputEnds == 1; });
    REQUIRE(wire.frames.size() == 3);
    CHECK(wire.frames[0] == "{\"a\":1}");
    CHECK(wire.frames[2] == "[3]");
    CHECK(wire.outputGone == 0);
    // Input has ended, answers still go out.
    wire.transport.send("{\"r\":1}");
    wire.transport.send("{\"r\":2}");
    bool flushed = false;
    wire.transport.whenFlushed([&] { flushed = true; });
    wire.until([&] { return flushed; });
    CHECK(readNow(out.reading) == "{\"r\":1}\n{\"r\":2}\n");
  }
}

TEST_CASE("transport: one socket as both streams", "[transport]") {
  Pair pair = makeSockets();
  Stdio stdio = takeFrom(pair.reading.get(), pair.reading.get());
  pair.reading.reset();
  Wire wire(std::move(stdio));
  wire.start();
  writeAll(pair.writing, "{\"a\":1}\n");
  wire.until([&] { return wire.frames.size() == 1; });
  ::shutdown(pair.writing.get(), SHUT_WR);
  wire.until([&] { return wire.inputEnds == 1; });
  wire.transport.send("{}");
  std::string heard;
  wire.until([&] { return (heard += readNow(pair.writing)).size() == 3; });
  CHECK(wire.outputGone == 0);
  pair.writing.reset();
  wire.until([&] { return wire.outputGone == 1; });
}

TEST_CASE("transport: answers come in the framing of the host", "[transport]") {
  Pair in = makePipe();
  Pair out = makePipe();
  Wire wire(takeFrom(in.reading.get(), out.writing.get()));
  wire.start();
  writeAll(in.writing, "Content-Length: 2\r\n\r\n{}");
  wire.until([&] { return wire.frames.size() == 1; });
  wire.transport.send("{\"e\":\"\xC3\xA9\"}");
  std::string heard;
  const std::string expected = "Content-Length: 10\r\n\r\n{\"e\":\"\xC3\xA9\"}";
  wire.until([&] { return (heard += readNow(out.reading)).size() >= expected.size(); });
  CHECK(heard == expected);
}

TEST_CASE("transport: files and /dev/null", "[transport]") {
  UniqueFd in = makeFile("{\"a\":1}\n\n{\"b\":2}");
  UniqueFd out = makeFile();
  Stdio stdio = takeFrom(in.get(), out.get());
  CHECK_FALSE(stdio.input.pollable);
  CHECK_FALSE(stdio.output.pollable);
  {
    Wire wire(std::move(stdio));
    wire.start();
    wire.until([&] { return wire.inputEnds == 1; });
    CHECK(wire.frames == Strings{"{\"a\":1}", "{\"b\":2}"});
    const std::string large(3 * limits::kUnsentBytes, 'x');
    wire.transport.send(large);
    wire.transport.send("{}");
    bool flushed = false;
    wire.transport.whenFlushed([&] { flushed = true; });
    wire.until([&] { return flushed; });
    CHECK(wire.outputGone == 0);
    CHECK(::lseek(out.get(), 0, SEEK_END) == static_cast<off_t>(large.size() + 4));
  }
  UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  stdio = takeFrom(null.get(), null.get());
  CHECK_FALSE(stdio.output.pollable);
  Wire wire(std::move(stdio));
  wire.start();
  wire.until([&] { return wire.inputEnds == 1; });
  bool flushed = false;
  wire.transport.send("{}");
  wire.transport.whenFlushed([&] { flushed = true; });
  wire.until([&] { return flushed; });
  CHECK(wire.outputGone == 0);
}

TEST_CASE("transport: an output that takes no more bytes is gone", "[transport]") {
  UniqueFd in = makeFile();
  UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  Wire wire(takeFrom(in.get(), full.get()));
  wire.start();
  wire.transport.send("{}");
  wire.until([&] { return wire.outputGone == 1; });
}

TEST_CASE("transport: a host that does not read is noticed, and then loses nothing", "[transport]") {
  for (const bool sockets : {false, true}) {
    INFO("sockets " << sockets);
    Pair in = makePipe();
    Pair out = sockets ? makeSockets() : makePipe();
    Stdio stdio = takeFrom(in.reading.get(), out.writing.get());
    Wire wire(std::move(stdio));
    wire.start();
    std::string sent;
    int number = 0;
    while (wire.congestion.empty()) {
      const std::string text = "{\"n\":" + std::to_string(number++) + ",\"pad\":\"" + std::string(30000, 'p') + "\"}";
      sent += text + "\n";
      wire.transport.send(text);
      wire.settle();
      REQUIRE(sent.size() < 4 * limits::kUnsentBytes);
    }
    CHECK(wire.congestion == std::vector<bool>{true});
    CHECK(sent.size() > limits::kUnsentBytes);
    // More may still be sent: it is the owner who stops its sources. And input is still read.
    for (int i = 0; i < 10; ++i) {
      sent += "{\"late\":true}\n";
      wire.transport.send("{\"late\":true}");
    }
    writeAll(in.writing, "{\"cancel\":1}\n");
    wire.until([&] { return wire.frames.size() == 1; });
    CHECK(wire.congestion.size() == 1);
    bool flushed = false;
    wire.transport.whenFlushed([&] { flushed = true; });
    std::string heard;
    wire.until([&] {
      heard += readNow(out.reading, 100000);
      return heard.size() >= sent.size();
    });
    CHECK((heard == sent));
    wire.until([&] { return flushed; });
    CHECK(wire.congestion == std::vector<bool>{true, false});
  }
}

TEST_CASE("transport: an output that is gone is noticed without writing", "[transport]") {
  for (const bool sockets : {false, true}) {
    INFO("sockets " << sockets);
    Pair in = makePipe();
    Pair out = sockets ? makeSockets() : makePipe();
    Stdio stdio = takeFrom(in.reading.get(), out.writing.get());
    out.writing.reset();
    Wire wire(std::move(stdio));
    wire.start();
    wire.settle();
    CHECK(wire.outputGone == 0);
    out.reading.reset();
    wire.until([&] { return wire.outputGone == 1; });
    // Nothing is kept for nobody, and input is still read.
    wire.transport.send("{}");
    bool flushed = false;
    wire.transport.whenFlushed([&] { flushed = true; });
    CHECK(flushed);
    writeAll(in.writing, "{}\n");
    wire.until([&] { return wire.frames.size() == 1; });
    CHECK(wire.outputGone == 1);
  }
}

TEST_CASE("transport: a host that dies with much unread", "[transport]") {
  Pair in = makePipe();
  Pair out = makePipe();
  Stdio stdio = takeFrom(in.reading.get(), out.writing.get());
  out.writing.reset();
  Wire wire(std::move(stdio));
  wire.start();
  wire.transport.send(std::string(2 * limits::kUnsentBytes, 'x'));
  bool flushed = false;
  wire.transport.whenFlushed([&] { flushed = true; });
  wire.settle();
  CHECK_FALSE(flushed);
  out.reading.reset();
  wire.until([&] { return wire.outputGone == 1; });
  CHECK(flushed);  // nobody waits for bytes that cannot go
  CHECK(wire.congestion == std::vector<bool>{true, false});
}

TEST_CASE("transport: reading stops and goes on", "[transport]") {
  for (const bool file : {false, true}) {
    INFO("file " << file);
    std::string script;
    for (int i = 0; i < 100000; ++i) {
      script += "{\"n\":" + std::to_string(i) + "}\n";
    }
    UniqueFd source = makeFile(script);
    Pair in = makePipe();
    Pair out = makePipe();
    Wire wire(takeFrom(file ? source.get() : in.reading.get(), out.writing.get()));
    wire.start();
    if (!file) {
      writeAll(in.writing, "{\"first\":1}\n");
    }
    wire.until([&] { return !wire.frames.empty(); });
    wire.transport.setReading(false);
    wire.settle();
    const std::size_t before = wire.frames.size();
    if (!file) {
      writeAll(in.writing, "{\"second\":2}\n");
    }
    wire.settle();
    CHECK(wire.frames.size() == before);
    CHECK(wire.inputEnds == 0);
    wire.transport.setReading(true);
    wire.transport.setReading(true);
    in.writing.reset();
    wire.until([&] { return wire.inputEnds == 1; });
    CHECK(wire.frames.size() == (file ? 100000 : 2));
    CHECK(wire.frames.back() == (file ? "{\"n\":99999}" : "{\"second\":2}"));
  }
}

TEST_CASE("transport: a large message in and out", "[transport]") {
  Pair in = makePipe();
  Pair out = makePipe();
  Wire wire(takeFrom(in.reading.get(), out.writing.get()));
  wire.start();
  const std::string large = "\"" + std::string(limits::kMessageBytes - 2, 'm') + "\"";
  const std::string bytes = large + "\n";
  ::fcntl(in.writing.get(), F_SETFL, O_NONBLOCK);
  std::size_t written = 0;
  wire.until([&] {
    const ssize_t count = ::write(in.writing.get(), bytes.data() + written, bytes.size() - written);
    written += count > 0 ? static_cast<std::size_t>(count) : 0;
    return written == bytes.size();
  });
  wire.until([&] { return wire.frames.size() == 1; });
  CHECK((wire.frames[0] == large));
  wire.transport.send(large);
  std::string heard;
  wire.until([&] { return (heard += readNow(out.reading)).size() >= bytes.size(); });
  CHECK((heard == bytes));
}

TEST_CASE("loop: tasks of other threads run on the loop's thread", "[loop]") {
  AsioLoop loop;
  bool there = false;
  CHECK(loop.onLoop());
  std::thread([&] {
    CHECK_FALSE(loop.onLoop());
    loop.post([&] { there = loop.onLoop(); });
  }).join();
  CHECK_FALSE(there);
  loop.context().run();
  CHECK(there);
}

}  // namespace stitchkit
