// The bootstrap addresses of a node, and how far the node has come with joining the network. A
// plain state machine: its owner queries the addresses and starts the look-up of the node's own id.
//
// Steps: all addresses are asked. The first answer starts a look-up of this node's own id; at its
// end the node has joined. If no address answers, all are asked again after a delay. After
// `timeout` without an answer, the node has joined a network of its own.
#pragma once

#include "kernels/base/units.hpp"

#include <caf/actor.hpp>
#include <caf/actor_addr.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

namespace shoal::actors {

class bootstrap {
public:
  /// `current` returns the nodes that are at these addresses now. An empty function means that the
  /// addresses never change.
  bootstrap(std::vector<caf::actor> addresses, std::function<std::vector<caf::actor>()> current,
            duration timeout, duration now);

  bool is_asking() const noexcept { return phase_ == phase::asking; }
  bool has_joined() const noexcept { return phase_ == phase::joined; }

  const std::vector<caf::actor>& addresses() const noexcept { return addresses_; }
  /// Reads the current addresses; the first attempt uses the initial ones. `self` is left out.
  void refresh(const caf::actor& self);
  /// The owner asks all addresses now.
  void begin_attempt();
  /// An address has answered. True if the look-up starts now.
  bool answered();
  /// A request to an address has failed. True if the whole attempt has failed with it.
  bool failed();
  bool has_timed_out(duration now) const { return now - started_ >= timeout_; }
  duration retry_delay() const;
  /// The look-up of this node starts, without an answer of a bootstrap address.
  void start_search() { phase_ = phase::searching; }
  /// The node has joined. False if it had joined before.
  bool join();

  /// Another actor of this host names a node, which is asked at once. At most `most` addresses are
  /// known.
  void introduce(const caf::actor& address, std::size_t most);

  // Addresses that have never answered are asked again from time to time, one after the other.
  /// The address has answered. True if this is its first answer.
  bool heard(const caf::actor& address) { return std::erase(unheard_, address) > 0; }
  /// The process at the address is dead.
  void died(const caf::actor_addr& address);
  std::optional<caf::actor> next_unheard();

private:
  enum class phase : std::uint8_t { asking, searching, joined };

  std::vector<caf::actor> addresses_;
  std::function<std::vector<caf::actor>()> current_;
  duration timeout_, started_;
  phase phase_ = phase::asking;
  unsigned attempts_ = 0;
  // Can be negative: an address introduced during an attempt is asked in two attempts.
  std::int64_t open_ = 0;
  std::deque<caf::actor> unheard_; // the next to be asked is last
};

} // namespace shoal::actors
