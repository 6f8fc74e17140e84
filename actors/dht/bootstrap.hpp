// The addresses with which a node begins, and how far it has come with joining the network through
// them. A plain state machine: its owner asks the addresses and starts the look-up of itself.
//
// Steps: all addresses are asked. The first answer starts a look-up of this node's own id; when
// that ends, it has joined. If none answers, all are asked again after a delay; after `patience`
// the node has joined a network of its own.
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
  /// `current` names the nodes that are at these addresses now; it may be empty: the same as at
  /// first.
  bootstrap(std::vector<caf::actor> addresses, std::function<std::vector<caf::actor>()> current,
            duration patience, duration now);

  bool is_asking() const noexcept { return phase_ == phase::asking; }
  bool has_joined() const noexcept { return phase_ == phase::joined; }

  const std::vector<caf::actor>& addresses() const noexcept { return addresses_; }
  /// Reads the current addresses, but not before the first attempt. `self` is left out.
  void refresh(const caf::actor& self);
  /// All addresses are asked now.
  void begin_attempt();
  /// One that was asked has answered. True if the look-up starts now.
  bool answered();
  /// One that was asked has failed. True if the attempt has failed by it.
  bool failed();
  bool is_impatient(duration now) const { return now - started_ >= patience_; }
  duration retry_delay() const;
  /// The look-up of this node starts, without an answer of a bootstrap address.
  void start_search() { phase_ = phase::searching; }
  /// False if it had joined before.
  bool join();

  /// This host's actors name another node, which is asked at once; at most `most` are known.
  void introduce(const caf::actor& address, std::size_t most);

  // Addresses that have never answered are asked again now and then, one after the other.
  /// True if the address had never answered.
  bool heard(const caf::actor& address) { return std::erase(unheard_, address) > 0; }
  /// Its process is dead.
  void died(const caf::actor_addr& address);
  std::optional<caf::actor> next_unheard();

private:
  enum class phase : std::uint8_t { asking, searching, joined };

  std::vector<caf::actor> addresses_;
  std::function<std::vector<caf::actor>()> current_;
  duration patience_, started_;
  phase phase_ = phase::asking;
  unsigned attempts_ = 0;
  std::int64_t open_ = 0; // below zero after an introduced address was asked in two attempts
  std::deque<caf::actor> unheard_; // the next to be asked last
};

} // namespace shoal::actors
