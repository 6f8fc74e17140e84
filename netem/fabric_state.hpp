// The implementation of the fabric: its parts, the lock that guards them, and their interplay.
// fabric.cpp sends and delivers. fabric_hosts.cpp has hosts and their lines. fabric_failures.cpp
// tells observers of failures. fabric_carrier.cpp connects the real network. Only these and
// port.cpp include this header.
//
// A function that takes a locked_section runs under the lock. Its parameter `here` collects
// reports, and objects to destroy after the lock is released.
#pragma once

#include "netem/bulk_lines.hpp"
#include "netem/carrier.hpp"
#include "netem/coordinator.hpp"
#include "netem/fabric.hpp"
#include "netem/failure_detector.hpp"
#include "netem/host_table.hpp"
#include "netem/locked_section.hpp"
#include "netem/message_table.hpp"
#include "netem/nat_rules.hpp"
#include "netem/paths.hpp"
#include "netem/port.hpp"
#include "netem/small_lines.hpp"
#include "netem/topology.hpp"

#include <caf/actor_system.hpp>
#include <caf/error.hpp>
#include <caf/type_erased_tuple.hpp>

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <vector>

namespace shoal::netem {

struct fabric_state {
  fabric_state(caf::actor_system& in, fabric_options chosen);
  fabric_state(const fabric_state&) = delete;

  /// A message that waits for a connection to open.
  struct held_message {
    message_under_way what;
    message_class kind;
  };
  /// Turns arrivals of bulk into events, and counts lost messages.
  class bulk_effects;

  // -- called by ports ------------------------------------------------------

  void send(port& to, caf::mailbox_element_ptr element);
  void observe(port& of, caf::attachable_ptr hook);
  std::size_t forget(port& of, const caf::attachable::token& what);

  // -- called by the coordinator --------------------------------------------

  void actor_born(host_index host, const caf::strong_actor_ptr& actor);
  void actor_ended(caf::actor_id id);
  void timer_delivered(caf::actor_id id, const caf::type_erased_tuple& content);
  void arrive(std::uint32_t message);
  void settle(); // solves the flows again, and plans the next completion
  void flows_due();
  void release(std::uint64_t pair); // sends the messages that waited for a connection
  void give_up(std::uint64_t pair, std::uint64_t number);
  void go_on(const bulk_lines::stopped_transfer& what);
  void suspect();
  /// The observers on host `observer` hear `unreachable` of the actors of `of`.
  void suspect(host_index of, host_index observer);
  void tell(port& of, std::uint64_t observer, const caf::error& reason);

  // -- under the lock -------------------------------------------------------

  bool tampers(host_index host) {
    std::lock_guard guard(mutex);
    return hosts[host].tampers;
  }
  machine_index add_machine(const machine_options& what);
  std::string identity_of(const std::string& name) const {
    return options.identity ? options.identity(name) : name;
  }
  host_index add_host(machine_index machine, std::uint32_t incarnation, caf::node_id node,
                      bool elsewhere);
  host_index start_host(machine_index machine, std::optional<std::uint32_t> given,
                        locked_section& here);
  host_index host_at(const caf::node_id& node);
  nat_rules& nat();

  bool small(std::uint64_t bytes, const message_class& what) const;
  bool reaches(message_under_way& what, const message_class& kind, locked_section& here);
  void depart(message_under_way what, const message_class& kind, locked_section& here);
  void depart_small(std::uint32_t message, const message_class& kind);
  duration small_delay(host_index from, host_index to, std::uint64_t bytes,
                       const message_class& what);
  void arrive_small(std::uint32_t message, duration delay);
  void hand_over(locked_section& here, port& to, host_index on_behalf,
                 caf::mailbox_element_ptr element);

  bool blocked(host_index from, host_index to, host_index relay = no_host) const;
  /// True if `a` has received nothing from `b` for the detection time.
  bool silent(host_index a, host_index b) const;
  blocked_pair& blocked_pair_of(host_index from, host_index to, host_index relay);
  void lose(std::uint32_t message, std::atomic<std::uint64_t>& count, locked_section& here);
  void go_on(std::uint64_t pair, const blocked_pair& what);
  void notify(port& of, observer who, const caf::error& reason);
  duration notice_time(const port& of, const observer& who) const;
  void collect_dead_observers(port& of, locked_section& here);

  duration flow_time(locked_section& here);
  void report(locked_section& here, event_kind kind, endpoint from, endpoint to, const char* type,
              std::uint64_t bytes = 0) {
    const auto now = clock.now();
    here.report({kind, now, now, from, to, type, bytes});
  }

  std::uint64_t counted_by_caf(const caf::type_erased_tuple& content, const char* name) const;
  std::uint64_t wire_size(const caf::type_erased_tuple& content, const message_class& what) const;

  caf::actor_system& system;
  coordinator& clock;
  fabric_options options;
  fabric_link link = std::make_shared<std::atomic<fabric_state*>>(this);
  reporting_mutex mutex;

  // Guarded by the mutex.
  topology places;
  host_table hosts;
  message_table messages;
  paths ways;
  bulk_lines bulk;
  small_lines small_messages;
  failure_detector failures;
  std::unique_ptr<nat_rules> reach;                        // null if all hosts are open
  std::map<std::uint64_t, std::vector<held_message>> held; // by the pair of hosts
  event_handle next_flow_event = 0;
  duration next_flow_time{};

  std::array<std::atomic<std::uint64_t>, fabric::traffic_classes> traffic{}, received{};
  std::atomic<std::uint64_t> bypassed{0};
  std::atomic<std::uint64_t> refused{0};
  std::atomic<std::uint64_t> lost{0};
  std::atomic<std::uint64_t> given_up{0};
};

class fabric_state::bulk_effects final : public bulk_lines::surroundings {
public:
  bulk_effects(fabric_state& in, locked_section& here) : bulk_effects(in, here, in.lost) {}
  /// Counts lost messages in `count`.
  bulk_effects(fabric_state& in, locked_section& here, std::atomic<std::uint64_t>& count)
      : in_(in), here_(here), count_(count) {}

  bool blocked(host_index from, host_index to, host_index relay) override {
    return in_.failures.any_cut() && in_.blocked(from, to, relay);
  }
  void waits_at_cut(host_index from, host_index to, host_index relay) override {
    in_.blocked_pair_of(from, to, relay);
  }
  void arrives(std::uint32_t message, duration at) override { in_.clock.arrive_at(at, message); }
  void lost(std::uint32_t message) override { in_.lose(message, count_, here_); }
  void ended(std::unique_ptr<transfer_record> what) override { here_.report(std::move(what)); }
  void changed() override {
    // On the wall clock, no hook runs between two instants.
    if (in_.clock.mode() == time_mode::wall_clock)
      in_.clock.at(in_.clock.now(), [in = &in_] { in->settle(); });
    else
      in_.clock.instant_changed();
  }

private:
  fabric_state& in_;
  locked_section& here_;
  std::atomic<std::uint64_t>& count_;
};

} // namespace shoal::netem
