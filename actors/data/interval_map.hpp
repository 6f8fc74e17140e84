// Disjoint half-open intervals of 64-bit indices, each with a value; equal neighbours are one
// piece. What a state machine over an unbounded index space needs, without ever touching single
// indices. Complexity: O(log n) to find, plus the number of pieces that an interval touches; n is
// the number of pieces.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace shoal::actors {

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

  /// Gives [first, end) this value, whatever it had.
  void assign(std::uint64_t first, std::uint64_t end, const Value& value) {
    if (first >= end)
      return;
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
    if (first >= end)
      return;
    split(first);
    split(end);
    pieces_.erase(pieces_.lower_bound(first), pieces_.lower_bound(end));
  }

  /// The pieces inside [first, end), cut at its ends, ascending.
  std::vector<piece> pieces(std::uint64_t first, std::uint64_t end) const {
    std::vector<piece> out;
    auto at = pieces_.upper_bound(first);
    if (at != pieces_.begin() && std::prev(at)->second.first > first)
      --at;
    for (; at != pieces_.end() && at->first < end; ++at)
      out.push_back({at->first < first ? first : at->first,
                     at->second.first > end ? end : at->second.first, at->second.second});
    return out;
  }

  std::vector<piece> pieces() const {
    std::vector<piece> out;
    out.reserve(pieces_.size());
    for (const auto& [first, rest] : pieces_)
      out.push_back({first, rest.first, rest.second});
    return out;
  }

  /// Requires: not empty.
  piece front() const {
    const auto& [first, rest] = *pieces_.begin();
    return {first, rest.first, rest.second};
  }

  bool covers(std::uint64_t first, std::uint64_t end) const {
    for (const auto& p : pieces(first, end)) {
      if (p.first != first)
        return false;
      first = p.end;
    }
    return first >= end;
  }

private:
  // Makes `at` a border between pieces, if it is inside one.
  void split(std::uint64_t at) {
    auto after = pieces_.lower_bound(at);
    if (after == pieces_.begin())
      return;
    auto before = std::prev(after);
    if (before->second.first <= at)
      return;
    pieces_.emplace_hint(after, at, before->second);
    before->second.first = at;
  }

  std::map<std::uint64_t, std::pair<std::uint64_t, Value>> pieces_; // first -> (end, value)
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
      if (first < p.first)
        out.push_back({first, p.first, {}});
      first = p.end;
    }
    if (first < end)
      out.push_back({first, end, {}});
    return out;
  }
};

} // namespace shoal::actors
