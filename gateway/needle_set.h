// Many needles in one text at once, by Aho and Corasick.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace stitchkit {

/// Add all needles, seal once; then immutable and thread-safe. A search takes time in proportion to the text, whatever
/// the text is: each step goes down by at most one, and only what was gone down can be gone up.
class NeedleSet {
 public:
  using State = std::uint32_t;  ///< 0: no needle has begun

  /// @param needle not empty. The same needle may be added with several tags.
  void add(std::string_view needle, std::uint32_t tag);
  void seal();

  [[nodiscard]] std::size_t longest() const noexcept { return longest_; }

  [[nodiscard]] State step(State state, unsigned char byte) const {
    while (state != 0) {
      for (State next = nodes_[state].child; next != 0; next = nodes_[next].sibling) {
        if (nodes_[next].byte == byte) {
          return next;
        }
      }
      state = nodes_[state].shorter;
    }
    return root_[byte];
  }

  /// The length of the longest needle that ends with the byte last stepped over; 0 for none.
  [[nodiscard]] std::size_t longestMatch(State state) const {
    const State ending = nodes_[state].ends ? state : nodes_[state].shorterEnding;
    return nodes_[ending].depth;
  }

  /// Calls `each(length, tag)` for all needles that end there.
  template <class Each>
  void forEachMatch(State state, Each each) const {
    for (State at = nodes_[state].ends ? state : nodes_[state].shorterEnding; at != 0; at = nodes_[at].shorterEnding) {
      for (const auto& [node, tag] : tagsOf(at)) {
        each(std::size_t{nodes_[node].depth}, tag);
      }
    }
  }

 private:
  struct Node {
    State child = 0;
    State sibling = 0;
    State shorter = 0;        ///< the longest end of this one's text that begins a needle, too
    State shorterEnding = 0;  ///< the longest such that is a needle
    std::uint32_t depth = 0;
    unsigned char byte = 0;
    bool ends = false;
  };
  struct Ending {
    State node;
    std::uint32_t tag;
  };
  struct Endings {
    const Ending* first;
    const Ending* last;
    [[nodiscard]] const Ending* begin() const { return first; }
    [[nodiscard]] const Ending* end() const { return last; }
  };

  State childOf(State state, unsigned char byte);
  [[nodiscard]] Endings tagsOf(State node) const;

  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::array<State, 256> root_{};
  std::vector<Ending> endings_;  // by node
  std::size_t longest_ = 0;
};

}  // namespace stitchkit
