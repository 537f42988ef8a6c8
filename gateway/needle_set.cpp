#include "gateway/needle_set.h"

#include <algorithm>

namespace stitchkit {

NeedleSet::State NeedleSet::childOf(State state, unsigned char byte) {
  if (state == 0 && root_[byte] != 0) {
    return root_[byte];
  }
  for (State next = nodes_[state].child; state != 0 && next != 0; next = nodes_[next].sibling) {
    if (nodes_[next].byte == byte) {
      return next;
    }
  }
  Node made;
  made.sibling = nodes_[state].child;
  made.depth = nodes_[state].depth + 1;
  made.byte = byte;
  const auto index = static_cast<State>(nodes_.size());
  nodes_.push_back(made);
  nodes_[state].child = index;
  if (state == 0) {
    root_[byte] = index;
  }
  return index;
}

void NeedleSet::add(std::string_view needle, std::uint32_t tag) {
  State state = 0;
  for (const char c : needle) {
    state = childOf(state, static_cast<unsigned char>(c));
  }
  nodes_[state].ends = true;
  endings_.push_back({state, tag});
  longest_ = std::max(longest_, needle.size());
}

void NeedleSet::seal() {
  std::sort(endings_.begin(), endings_.end(), [](const Ending& a, const Ending& b) { return a.node < b.node; });
  std::vector<State> queue{0};
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const State parent = queue[i];
    for (State node = nodes_[parent].child; node != 0; node = nodes_[node].sibling) {
      const State shorter = parent == 0 ? 0 : step(nodes_[parent].shorter, nodes_[node].byte);
      nodes_[node].shorter = shorter;
      nodes_[node].shorterEnding = nodes_[shorter].ends ? shorter : nodes_[shorter].shorterEnding;
      queue.push_back(node);
    }
  }
}

NeedleSet::Endings NeedleSet::tagsOf(State node) const {
  const auto before = [](const Ending& ending, State state) { return ending.node < state; };
  const auto first = std::lower_bound(endings_.begin(), endings_.end(), node, before);
  auto last = first;
  while (last != endings_.end() && last->node == node) {
    ++last;
  }
  return {endings_.data() + (first - endings_.begin()), endings_.data() + (last - endings_.begin())};
}

}  // namespace stitchkit
