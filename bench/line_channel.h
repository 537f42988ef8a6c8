// Whole lines to and from a child, over two pipes or a pair of sockets.
#pragma once

#include "rpc/base/unique_fd.h"

#include <string>
#include <string_view>
#include <utility>

namespace stitchkit::bench {

/// What a child's stdin and stdout are made of: pipes as a shell makes them, sockets as Node.js does.
enum class Transport { kPipes, kSocketPair };

/// Our ends and the child's. After the child has started, closeChildEnds().
/// One thread may send while another receives; nothing else is shared.
class LineChannel {
 public:
  explicit LineChannel(Transport transport);

  [[nodiscard]] int childInput() const noexcept { return childInput_.get(); }
  [[nodiscard]] int childOutput() const noexcept { return childOutput_.get(); }
  void closeChildEnds() noexcept;
  /// The child sees the end of its input.
  void closeInput() noexcept;

  /// Blocks until all of `bytes` are written. Throws when the child is gone.
  void send(std::string_view bytes);
  /// The next line without its end; valid until the next call. Throws at the end of the child's output.
  std::string_view receive();

 private:
  std::string_view takeLine(std::size_t newline);

  UniqueFd childInput_, childOutput_, input_, output_;
  std::string buffer_;
  std::size_t begin_ = 0;  ///< of the bytes not yet given out
  std::size_t end_ = 0;    ///< of the bytes received
};

}  // namespace stitchkit::bench
