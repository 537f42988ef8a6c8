#include "backend/launch/output_pump.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <utility>

namespace stitchkit {
namespace {

// A pipe's usual capacity. One buffer serves all pumps of a loop: nothing stays in it between turns.
constexpr std::size_t kPieceBytes = 64UL * 1024;
thread_local std::array<char, kPieceBytes> piece;

}  // namespace

OutputPump::OutputPump(boost::asio::io_context& io, UniqueFd readEnd, Sink sink)
    : pipe_(io, readEnd.release()), sink_(std::move(sink)) {
  // A guest can open its own pipe for reading (/proc/self/fd/1) and take what we were told is there.
  pipe_.non_blocking(true);
}

void OutputPump::start(const std::shared_ptr<void>& owner) {
  owner_ = owner;
  running_ = true;
  arm();
}

void OutputPump::pause() noexcept {
  paused_ = true;
}

void OutputPump::resume() {
  paused_ = false;
  arm();
}

void OutputPump::arm() {
  if (paused_ || waiting_ || !running_) {
    return;
  }
  waiting_ = true;
  pipe_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                   [this, keep = owner_.lock()](boost::system::error_code error) {
                     waiting_ = false;
                     if (!error && running_ && !paused_) {
                       onReadable();
                     }
                   });
}

void OutputPump::onReadable() {
  switch (readPiece(kPieceBytes)) {
    case Piece::kTaken:
    case Piece::kNone:
      arm();
      break;
    case Piece::kLast:
      running_ = false;
      break;
  }
}

OutputPump::Piece OutputPump::readPiece(std::size_t most) {
  ssize_t count = 0;
  do {
    count = ::read(pipe_.native_handle(), piece.data(), std::min(most, kPieceBytes));
  } while (count < 0 && errno == EINTR);
  if (count <= 0) {
    return count < 0 && errno == EAGAIN ? Piece::kNone : Piece::kLast;
  }
  return sink_(std::string_view(piece.data(), static_cast<std::size_t>(count))) ? Piece::kTaken : Piece::kLast;
}

void OutputPump::drain() {
  running_ = false;
  int available = 0;
  if (!pipe_.is_open() || ::ioctl(pipe_.native_handle(), FIONREAD, &available) != 0) {
    return;
  }
  // Pieces may be smaller than asked for only at the end of what is there.
  for (std::size_t taken = 0; taken < static_cast<std::size_t>(std::max(available, 0)); taken += kPieceBytes) {
    if (readPiece(kPieceBytes) != Piece::kTaken) {
      break;
    }
  }
  pipe_.close();
}

}  // namespace stitchkit
