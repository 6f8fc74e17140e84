// A value for every index of 0 .. 2^64 - 1, kept as intervals: memory grows with the number of
// changes of the value along the axis, not with the number of indices. Indices that were never
// touched hold V{}, and setting an index back to V{} forgets it. What checks the data shard's
// ledger shares no code with it, so this is not actors/data/interval_map.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

namespace shoal::scenarios {

template <class V>
class interval_map {
public:
  /// Calls change(begin, end, V&) for each stretch of one value in [begin, end), those of V{} too;
  /// what it leaves in the value is stored.
  /// Complexity: O(log pieces + pieces in the range).
  template <class Change>
  void update(std::uint64_t begin, std::uint64_t end, Change change) {
    if (begin >= end)
      return;
    split(begin);
    split(end);
    auto next = pieces_.lower_bound(begin);
    for (std::uint64_t at = begin; at < end;) {
      if (next != pieces_.end() && next->first == at) {
        const std::uint64_t stop = next->second.end;
        change(at, stop, next->second.value);
        next = next->second.value == V{} ? pieces_.erase(next) : std::next(next);
        at = stop;
      } else {
        const std::uint64_t stop = next == pieces_.end() ? end : std::min(end, next->first);
        V value{};
        change(at, stop, value);
        if (!(value == V{}))
          pieces_.emplace_hint(next, at, piece{stop, value});
        at = stop;
      }
    }
    merge(begin, end);
  }

  void assign(std::uint64_t begin, std::uint64_t end, const V& value) {
    update(begin, end, [&](std::uint64_t, std::uint64_t, V& v) { v = value; });
  }

  /// Calls see(begin, end, const V&) for each stretch of one value in [begin, end), those of V{}
  /// too.
  template <class See>
  void visit(std::uint64_t begin, std::uint64_t end, See see) const {
    auto next = pieces_.upper_bound(begin);
    if (next != pieces_.begin() && std::prev(next)->second.end > begin)
      --next;
    for (std::uint64_t at = begin; at < end;) {
      if (next == pieces_.end() || next->first >= end)
        return see(at, end, V{});
      if (next->first > at)
        see(at, next->first, V{});
      const std::uint64_t from = std::max(at, next->first);
      at = std::min(end, next->second.end);
      see(from, at, next->second.value);
      ++next;
    }
  }

  /// Calls see(begin, end, const V&) for each stored stretch, ascending.
  template <class See>
  void for_each(See see) const {
    for (const auto& [begin, what] : pieces_)
      see(begin, what.end, what.value);
  }

  V at(std::uint64_t index) const {
    auto next = pieces_.upper_bound(index);
    if (next == pieces_.begin() || (--next)->second.end <= index)
      return V{};
    return next->second.value;
  }

  bool empty() const noexcept { return pieces_.empty(); }
  void clear() noexcept { pieces_.clear(); }
  std::size_t pieces() const noexcept { return pieces_.size(); }
  /// First stored index, and one past the last. Requires: not empty.
  std::uint64_t lowest() const { return pieces_.begin()->first; }
  std::uint64_t highest() const { return pieces_.rbegin()->second.end; }

private:
  struct piece {
    std::uint64_t end;
    V value;
  };

  void split(std::uint64_t at) {
    auto next = pieces_.lower_bound(at);
    if (next == pieces_.begin())
      return;
    piece& left = std::prev(next)->second;
    if (left.end <= at)
      return;
    pieces_.emplace_hint(next, at, piece{left.end, left.value});
    left.end = at;
  }

  void merge(std::uint64_t begin, std::uint64_t end) {
    auto left = pieces_.lower_bound(begin);
    if (left != pieces_.begin())
      --left;
    while (left != pieces_.end() && left->first <= end) {
      auto right = std::next(left);
      if (right != pieces_.end() && left->second.end == right->first &&
          left->second.value == right->second.value) {
        left->second.end = right->second.end;
        pieces_.erase(right);
      } else {
        left = right;
      }
    }
  }

  std::map<std::uint64_t, piece> pieces_;
};

} // namespace shoal::scenarios
