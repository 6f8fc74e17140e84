// The address of an actor as other hosts see it. A port passes messages to the fabric, which
// delivers them after the network's time. A port tells each observer of the actor's end when that
// observer can know. Each published actor has one port, which is removed when the actor ends.
#pragma once

#include "netem/ids.hpp"
#include "netem/observer_list.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_proxy.hpp>
#include <caf/attachable.hpp>

#include <atomic>
#include <memory>
#include <vector>

namespace shoal::netem {

struct fabric_state;

/// A pointer to the fabric's state, or null after the fabric's end: handles may outlive their
/// world.
using fabric_link = std::shared_ptr<std::atomic<fabric_state*>>;

class port final : public caf::actor_proxy {
public:
  port(caf::actor_config& config, fabric_link net, caf::strong_actor_ptr actor, host_index host,
       std::uint32_t ordinal);
  ~port() override;

  host_index host() const noexcept { return host_; }
  std::uint32_t ordinal() const noexcept { return ordinal_; }

  void enqueue(caf::mailbox_element_ptr element, caf::execution_unit* unit) override;
  void attach(caf::attachable_ptr observer) override;
  std::size_t detach(const caf::attachable::token& what) override;
  void kill_proxy(caf::execution_unit* unit, caf::error reason) override;

  // The fabric's lock guards the actor and the observers.
  /// The actor; empty once it has ended, and for actors of other processes.
  const caf::strong_actor_ptr& actor() const noexcept { return actor_; }
  caf::strong_actor_ptr take_actor() noexcept { return std::exchange(actor_, nullptr); }
  observer_list& observers() noexcept { return observers_; }

  /// The number of ports in this process. Tests use it to show that none leaks.
  static std::size_t live() noexcept;

private:
  fabric_link net_;
  caf::strong_actor_ptr actor_;
  host_index host_;
  std::uint32_t ordinal_;
  observer_list observers_;
};

/// The port behind an address. Requires: the fabric made the address.
inline port& port_at(const caf::strong_actor_ptr& address) {
  return *static_cast<port*>(caf::actor_cast<caf::abstract_actor*>(address));
}

} // namespace shoal::netem
