// Chunks that wait to be sent, by member. At most a window of them are under way to one member at a
// time; in a round without acknowledgements nothing counts as under way.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace shoal::actors {

class outbox {
public:
  struct item {
    bool reduced = false; ///< a finished chunk, else one of our slices
    std::uint32_t part = 0, chunk = 0;
    bool operator==(const item&) const = default;
  };

  outbox(std::uint32_t members, std::uint32_t window) : window_(window), to_(members) {}

  void queue(std::uint32_t member, item what) { to_[member].waiting.push_back(what); }
  std::size_t waiting(std::uint32_t member) const { return to_[member].waiting.size(); }
  /// Takes the next item; nothing if the window is full or no item waits. An item that is really
  /// sent counts as under way after sent().
  std::optional<item> next(std::uint32_t member) {
    auto& line = to_[member];
    if (line.under_way >= window_ || line.waiting.empty()) return std::nullopt;
    const item out = line.waiting.front();
    line.waiting.pop_front();
    return out;
  }
  void sent(std::uint32_t member) { ++to_[member].under_way; }
  /// The member has one more item. False if nothing was under way.
  bool confirmed(std::uint32_t member) {
    if (to_[member].under_way == 0) return false;
    --to_[member].under_way;
    return true;
  }
  /// The member is lost.
  void drop(std::uint32_t member) { to_[member] = {}; }
  /// The round failed: nothing more is sent.
  void clear() {
    for (auto& line : to_) line.waiting.clear();
  }

private:
  struct line {
    std::deque<item> waiting;
    std::uint32_t under_way = 0;
  };

  std::uint32_t window_;
  std::vector<line> to_;
};

} // namespace shoal::actors
