// The address of an actor as other hosts see it. A port hands what is sent to it to the fabric,
// which delivers after the network's time; it tells each observer of a death when that observer can
// know. One port for each published actor; it is erased when its actor ends.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include <caf/actor_proxy.hpp>
#include <caf/attachable.hpp>

#include "netem/coordinator.hpp"

namespace shoal::netem {

class fabric;

/// The fabric, or null once it is gone: handles may outlive their world.
using fabric_link = std::shared_ptr<std::atomic<fabric*>>;

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

  /// Ports alive in this process; tests use it to show that none leaks.
  static std::size_t live() noexcept;

 private:
  friend class fabric;
  struct observer {
    caf::attachable_ptr hook;
    host_index host;
    std::uint64_t number = 0;
    event_handle notice = 0;    // planned once the actor has ended
  };

  fabric_link net_;
  caf::strong_actor_ptr actor_;  // empty once the actor has ended; guarded by the fabric
  host_index host_;
  std::uint32_t ordinal_;
  std::vector<observer> observers_;
  std::uint64_t next_observer_ = 0;
  std::size_t sweep_observers_at_ = 64;
};

}  // namespace shoal::netem
