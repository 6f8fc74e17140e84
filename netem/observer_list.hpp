// The observers of one actor, which asked through its address for a notice of its end.
// Thread safety: none. The fabric's lock guards the list of each port.
#pragma once

#include "netem/event_queue.hpp"

#include <caf/attachable.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace shoal::netem {

struct observer {
  caf::attachable_ptr hook;
  host_index host = no_host;
  std::uint64_t number = 0;
  event_handle notice = 0; ///< the planned notice of the actor's end; 0: none
};

class observer_list {
public:
  /// Numbers an observer. add() puts it in the list.
  observer make(caf::attachable_ptr hook, host_index host) {
    return {std::move(hook), host, next_number_++};
  }
  void add(observer what) { all_.push_back(std::move(what)); }

  bool empty() const noexcept { return all_.empty(); }
  auto begin() const noexcept { return all_.begin(); }
  auto end() const noexcept { return all_.end(); }

  /// Returns nothing if the observer is not in the list any more.
  std::optional<observer> take(std::uint64_t number) {
    const auto found = std::find_if(all_.begin(), all_.end(),
                                    [&](const observer& o) { return o.number == number; });
    if (found == all_.end()) return std::nullopt;
    auto out = std::move(*found);
    all_.erase(found);
    return out;
  }
  std::vector<observer> take_all() { return std::exchange(all_, {}); }
  /// Takes the observers for which `what(observer)` is true. The others keep their order.
  template <class Predicate>
  std::vector<observer> take_if(Predicate what) {
    std::vector<observer> out;
    std::erase_if(all_, [&](observer& o) {
      const bool taken = what(std::as_const(o));
      if (taken) out.push_back(std::move(o));
      return taken;
    });
    return out;
  }

  /// True if the list has doubled since the last collection, so that dead observers should be
  /// removed.
  bool needs_collection() const noexcept { return all_.size() >= collect_at_; }
  void collected() noexcept { collect_at_ = std::max<std::size_t>(64, 2 * all_.size()); }

private:
  std::vector<observer> all_;
  std::uint64_t next_number_ = 0;
  std::size_t collect_at_ = 64;
};

} // namespace shoal::netem
