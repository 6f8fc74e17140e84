// Many doubly linked lists of indices. Each index is in at most one list. Insertion and removal are
// O(1), and allocate nothing once the arrays have their size.
#pragma once

#include <cstdint>
#include <vector>

namespace shoal::netem {

class index_lists {
public:
  static constexpr std::uint32_t none = 0xffffffff;

  /// The first index of a list; `none` if the list is empty.
  std::uint32_t first(std::uint32_t list) const noexcept {
    return list < heads_.size() ? heads_[list] : none;
  }
  std::uint32_t next(std::uint32_t index) const noexcept { return links_[index].next; }

  /// Requires: `index` is in no list.
  void push_front(std::uint32_t list, std::uint32_t index) {
    if (list >= heads_.size()) heads_.resize(std::size_t{list} + 1, none);
    if (index >= links_.size()) links_.resize(std::size_t{index} + 1);
    auto& head = heads_[list];
    links_[index] = {head, none};
    if (head != none) links_[head].previous = index;
    head = index;
  }

  /// Requires: `index` is in `list`.
  void remove(std::uint32_t list, std::uint32_t index) noexcept {
    const auto [next, previous] = links_[index];
    if (previous == none)
      heads_[list] = next;
    else
      links_[previous].next = next;
    if (next != none) links_[next].previous = previous;
  }

private:
  struct neighbours {
    std::uint32_t next = none, previous = none;
  };

  std::vector<std::uint32_t> heads_; // by list
  std::vector<neighbours> links_;    // by index
};

} // namespace shoal::netem
