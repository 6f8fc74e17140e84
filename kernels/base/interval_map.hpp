// Disjoint half-open intervals of 64-bit indices, each with a value; equal neighbours are one
// piece. State machines over an unbounded index space use this map. It never touches single
// indices, so memory grows with the number of changes of the value along the axis.
// Complexity: O(log n) to find, plus the number of pieces that an interval touches; n is the number
// of pieces.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace shoal {

template <class Value>
class interval_map {
public:
  struct piece {
    std::uint64_t first = 0, end = 0;
    Value value{};
    std::uint64_t size() const noexcept { return end - first; }
  };

  bool empty() const noexcept { return pieces_.empty(); }
  std::size_t piece_count() const noexcept { return pieces_.size(); }

  /// Gives [first, end) this value, and drops the former values.
  void assign(std::uint64_t first, std::uint64_t end, const Value& value) {
    if (first >= end) return;
    erase(first, end);
    auto after = pieces_.lower_bound(first);
    if (after != pieces_.end() && after->first == end && after->second.second == value) {
      end = after->second.first;
      after = pieces_.erase(after);
    }
    if (after != pieces_.begin()) {
      auto before = std::prev(after);
      if (before->second.first == first && before->second.second == value) {
        before->second.first = end;
        return;
      }
    }
    pieces_.emplace_hint(after, first, std::pair{end, value});
  }

  void erase(std::uint64_t first, std::uint64_t end) {
    if (first >= end) return;
    split(first);
    split(end);
    pieces_.erase(pieces_.lower_bound(first), pieces_.lower_bound(end));
  }

  /// Calls change(first, end, Value&) for each stretch of one value in [first, end). A gap is a
  /// stretch of Value{}. The map stores the changed value, and a stretch of Value{} becomes a gap.
  template <class Change>
  void update(std::uint64_t first, std::uint64_t end, Change change) {
    if (first >= end) return;
    split(first);
    split(end);
    auto next = pieces_.lower_bound(first);
    for (std::uint64_t at = first; at < end;) {
      std::uint64_t stop = end;
      if (next != pieces_.end() && next->first == at) {
        auto& value = next->second.second;
        stop = next->second.first;
        change(at, stop, value);
        next = value == Value{} ? pieces_.erase(next) : std::next(next);
      } else {
        if (next != pieces_.end()) stop = std::min(end, next->first);
        Value value{};
        change(at, stop, value);
        if (!(value == Value{})) pieces_.emplace_hint(next, at, std::pair{stop, value});
      }
      at = stop;
    }
    merge(first, end);
  }

  /// Calls see(first, end, const Value&) for each stretch of one value in [first, end). A gap is a
  /// stretch of Value{}.
  template <class See>
  void visit(std::uint64_t first, std::uint64_t end, See see) const {
    auto next = pieces_.upper_bound(first);
    if (next != pieces_.begin() && std::prev(next)->second.first > first) --next;
    for (std::uint64_t at = first; at < end; ++next) {
      if (next == pieces_.end() || next->first >= end) return see(at, end, Value{});
      if (next->first > at) see(at, next->first, Value{});
      const std::uint64_t from = std::max(at, next->first);
      at = std::min(end, next->second.first);
      see(from, at, next->second.second);
    }
  }

  /// The value at `index`; Value{} in a gap.
  Value at(std::uint64_t index) const {
    auto next = pieces_.upper_bound(index);
    if (next == pieces_.begin() || (--next)->second.first <= index) return Value{};
    return next->second.second;
  }

  /// The pieces inside [first, end), cut at its ends, ascending.
  std::vector<piece> pieces(std::uint64_t first, std::uint64_t end) const {
    std::vector<piece> out;
    auto at = pieces_.upper_bound(first);
    if (at != pieces_.begin() && std::prev(at)->second.first > first) --at;
    for (; at != pieces_.end() && at->first < end; ++at)
      out.push_back({at->first < first ? first : at->first,
                     at->second.first > end ? end : at->second.first, at->second.second});
    return out;
  }

  std::vector<piece> pieces() const {
    std::vector<piece> out;
    out.reserve(pieces_.size());
    for (const auto& [first, rest] : pieces_) out.push_back({first, rest.first, rest.second});
    return out;
  }

  /// Requires: not empty.
  piece front() const { return as_piece(*pieces_.begin()); }
  piece back() const { return as_piece(*pieces_.rbegin()); }

  bool covers(std::uint64_t first, std::uint64_t end) const {
    for (const auto& p : pieces(first, end)) {
      if (p.first != first) return false;
      first = p.end;
    }
    return first >= end;
  }

private:
  using stored = std::map<std::uint64_t, std::pair<std::uint64_t, Value>>; // first -> (end, value)

  static piece as_piece(const typename stored::value_type& from) {
    return {from.first, from.second.first, from.second.second};
  }

  // Makes `at` a border between pieces, if it is inside one.
  void split(std::uint64_t at) {
    auto after = pieces_.lower_bound(at);
    if (after == pieces_.begin()) return;
    auto before = std::prev(after);
    if (before->second.first <= at) return;
    pieces_.emplace_hint(after, at, before->second);
    before->second.first = at;
  }

  // Joins equal neighbours, from the piece before `first` to the one at `end`.
  void merge(std::uint64_t first, std::uint64_t end) {
    auto left = pieces_.lower_bound(first);
    if (left != pieces_.begin()) --left;
    while (left != pieces_.end() && left->first <= end) {
      auto right = std::next(left);
      if (right != pieces_.end() && left->second.first == right->first &&
          left->second.second == right->second.second) {
        left->second.first = right->second.first;
        pieces_.erase(right);
      } else {
        left = right;
      }
    }
  }

  stored pieces_;
};

struct no_value {
  bool operator==(const no_value&) const = default;
};

/// Disjoint intervals without values.
class interval_set : public interval_map<no_value> {
public:
  void insert(std::uint64_t first, std::uint64_t end) { assign(first, end, {}); }

  /// The gaps of [first, end): the intervals that are not in the set.
  std::vector<piece> missing(std::uint64_t first, std::uint64_t end) const {
    std::vector<piece> out;
    for (const auto& p : pieces(first, end)) {
      if (first < p.first) out.push_back({first, p.first, {}});
      first = p.end;
    }
    if (first < end) out.push_back({first, end, {}});
    return out;
  }
};

} // namespace shoal
