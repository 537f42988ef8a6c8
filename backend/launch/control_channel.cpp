#include "backend/launch/control_channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "backend/launch/descriptors.h"
#include "backend/launch/launch_failure.h"

namespace stitchkit {
namespace {

constexpr std::size_t kMaxDescriptors = 4;

union DescriptorControl {
  cmsghdr header;
  char bytes[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
};

// Takes all that came, so that none leaks; the first is the message's.
UniqueFd takeDescriptor(msghdr& message) {
  UniqueFd first;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      UniqueFd taken(fd);
      if (!first) {
        first = std::move(taken);
      }
    }
  }
  return first;
}

}  // namespace

ControlChannel::ControlChannel(boost::asio::io_context& io, UniqueFd socket) : socket_(io, socket.release()) {}

ControlChannel::Receipt ControlChannel::receive(HelperMessage& message) {
  char bytes[std::max(sizeof(LaunchReport), sizeof(LaunchReady))];
  iovec part{bytes, sizeof bytes};
  DescriptorControl control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.bytes;
  header.msg_controllen = sizeof control.bytes;
  ssize_t size = 0;
  do {
    size = ::recvmsg(socket_.native_handle(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (size < 0 && errno == EINTR);
  if (size < 0 && errno == EAGAIN) {
    return Receipt::kNothing;
  }
  if (size <= 0) {
    return size < 0 && errno == ECONNRESET ? Receipt::kUntaken : Receipt::kEnd;
  }
  message.descriptor = takeDescriptor(header);
  static_assert(sizeof(LaunchReady) != sizeof(LaunchReport), "told apart by size");
  if (size == sizeof(LaunchReport)) {
    std::memcpy(&message.report.emplace(), bytes, sizeof(LaunchReport));
    return message.report->magic == LAUNCH_MAGIC ? Receipt::kMessage : Receipt::kEnd;
  }
  if (size == sizeof(LaunchReady)) {
    std::memcpy(&message.ready, bytes, sizeof(LaunchReady));
    return message.ready.magic == LAUNCH_MAGIC ? Receipt::kMessage : Receipt::kEnd;
  }
  return Receipt::kEnd;
}

Result<void> ControlChannel::send(const LaunchPacket& packet, std::string_view payload,
                                  std::span<const int> descriptors) {
  LaunchPacket copy = packet;
  iovec parts[]{{&copy, sizeof copy}, {const_cast<char*>(payload.data()), payload.size()}};
  DescriptorControl control{};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = std::size(parts);
  if (!descriptors.empty()) {
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket_.native_handle(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) {
    return errno == EPIPE || errno == ECONNRESET ? killedFromOutside() : launchResourceError("send to helper", errno);
  }
  return {};
}

bool ControlChannel::hungUp() noexcept {
  pollfd waiter{socket_.native_handle(), 0, 0};
  return ::poll(&waiter, 1, 0) == 1 && (waiter.revents & POLLHUP) != 0;
}

void ControlChannel::endSending() noexcept {
  ::shutdown(socket_.native_handle(), SHUT_WR);
}

}  // namespace stitchkit
