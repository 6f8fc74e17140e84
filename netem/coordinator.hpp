// Our CAF scheduler: one coordinator for virtual time and for the wall clock. It resumes one
// message at a time and knows on whose behalf the running code runs (the current host), which is
// what makes ports able to attribute what is sent.
//
// Virtual time: one thread, the one that calls run(); the clock jumps from event to event.
// Wall clock: worker threads resume actors, run() serves the events when they are due.
//
// How it was proven: CAF 0.17.6 loads a scheduler as a module before its built-in policy is chosen.
#pragma once

#include "kernels/base/units.hpp"
#include "netem/event_queue.hpp"

#include <caf/actor_clock.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/execution_unit.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

namespace shoal::netem {

enum class time_mode { virtual_time, wall_clock };

/// Load this to get the coordinator:  netem::system_config config{mode};  caf::actor_system
/// system{config};
class system_config : public caf::actor_system_config {
public:
  explicit system_config(time_mode mode, unsigned workers = 1);
  time_mode mode() const noexcept { return mode_; }
  unsigned workers() const noexcept { return workers_; }

private:
  time_mode mode_;
  unsigned workers_;
};

class coordinator;

/// While it lives, this thread acts on behalf of `host`.
class acting_as {
public:
  explicit acting_as(host_index host) noexcept;
  ~acting_as();
  acting_as(const acting_as&) = delete;

private:
  host_index before_;
};

/// Serves CAF's timers and our events from one queue. `now` starts at zero in both modes.
class event_clock : public caf::actor_clock {
public:
  explicit event_clock(coordinator& owner) : owner_(owner) {}

  time_point now() const noexcept override;
  void set_ordinary_timeout(time_point, caf::abstract_actor*, caf::atom_value,
                            std::uint64_t) override;
  void set_multi_timeout(time_point, caf::abstract_actor*, caf::atom_value, std::uint64_t) override;
  void set_request_timeout(time_point, caf::abstract_actor*, caf::message_id) override;
  void cancel_ordinary_timeout(caf::abstract_actor*, caf::atom_value) override;
  void cancel_request_timeout(caf::abstract_actor*, caf::message_id) override;
  void cancel_timeouts(caf::abstract_actor*) override;
  void schedule_message(time_point, caf::strong_actor_ptr, caf::mailbox_element_ptr) override;
  void schedule_message(time_point, caf::group, caf::strong_actor_ptr, caf::message) override;
  void cancel_all() override;

private:
  coordinator& owner_;
};

class coordinator : public caf::scheduler::abstract_coordinator {
public:
  static caf::actor_system::module* make(caf::actor_system& system, caf::detail::type_list<>);
  static coordinator& of(caf::actor_system& system);

  explicit coordinator(caf::actor_system& system);
  ~coordinator() override;

  // -- what the world uses --------------------------------------------------

  time_mode mode() const noexcept { return mode_; }
  /// Time since the world began.
  duration now() const noexcept;

  /// Runs `action` at `when` (at once if that is past), on no host's behalf.
  event_handle at(duration when, std::function<void()> action);
  bool cancel(event_handle handle);

  /// Whose code is running; no_host outside of actors.
  static host_index current_host() noexcept;
  /// Runs `action` as if host `host` did it: what it spawns lives there.
  void as_host(host_index host, const std::function<void()>& action);

  /// Called whenever all work of an instant is done, before time moves on.
  void before_time_moves(std::function<void()> hook) { hook_ = std::move(hook); }
  /// Called when a scheduled message (a timer) is delivered to an actor.
  void on_timer(std::function<void(caf::actor_id, const caf::type_erased_tuple&)> hook) {
    timer_hook_ = std::move(hook);
  }
  /// Called for each new actor with its host before it first runs, and when an actor of a host has
  /// ended.
  void on_actor(std::function<void(host_index, const caf::strong_actor_ptr&)> born,
                std::function<void(caf::actor_id)> ended) {
    born_ = std::move(born);
    ended_ = std::move(ended);
  }

  /// Runs until `limit`, until stop() is asked for, or (virtual time) until nothing is left to do.
  /// Returns the time reached.
  duration run(duration limit);
  /// Makes run() return after what is being done now. Thread safety: any thread.
  void request_stop() noexcept;

  /// Actors of this host do nothing until release(): what is sent to them waits in their mailboxes.
  /// What one of them is doing now it ends.
  void hold(host_index host);
  void release(host_index host);

  /// The host an actor lives on; no_host for CAF's own actors.
  host_index host_of(caf::actor_id id) const;

  /// Lets everything happen that is ready, without moving the virtual time; on the wall clock waits
  /// until the workers are idle. Requires: not called by an actor.
  void settle();

  std::uint64_t messages_resumed() const noexcept { return resumed_; }
  std::size_t pending_events() const;
  std::size_t live_actors() const noexcept { return live_actors_; }

  // -- what CAF uses --------------------------------------------------------

  void enqueue(caf::resumable* job) override;
  caf::actor_clock& clock() noexcept override { return clock_; }
  bool detaches_utility_actors() const override { return false; }
  void start() override;
  void stop() override;

private:
  friend class event_clock;

  class unit : public caf::execution_unit {
  public:
    unit(caf::actor_system* system, coordinator* owner)
        : caf::execution_unit(system), owner_(owner) {}
    void exec_later(caf::resumable* job) override { owner_->enqueue(job); }

  private:
    coordinator* owner_;
  };

  void push(event&& what);
  /// An answered request needs its timer no more (CAF never drops it).
  void answered(caf::actor_id requester, caf::message_id response);
  void make_ready(caf::resumable* job);
  void resume(caf::resumable* job, unit& on);
  void deliver(event& what);
  /// Runs ready jobs until none is left. Virtual time only.
  void drain();
  void work(std::size_t worker); // a worker thread
  bool is_local(const caf::strong_actor_ptr& actor);
  void forget_timers(caf::actor_id id);

  time_mode mode_;
  unsigned worker_count_;
  event_clock clock_;
  unit unit_;
  std::atomic<std::int64_t> virtual_now_{0};
  std::chrono::steady_clock::time_point wall_start_;

  mutable std::mutex mutex_; // guards events_, jobs_, requests_ and hosts_ on the wall clock
  std::condition_variable work_ready_, events_changed_, idle_;
  event_queue events_;
  std::deque<caf::resumable*> jobs_;
  std::vector<caf::resumable*> running_; // by worker: what it resumes, wall clock only
  std::unordered_map<std::uint64_t, event_handle> requests_; // never iterated
  std::vector<host_index> hosts_;                            // by actor id
  std::map<host_index, std::deque<caf::resumable*>> held_;   // what actors of held hosts have to do
  std::size_t busy_workers_ = 0;
  std::vector<std::thread> workers_;

  std::function<void()> hook_;
  std::function<void(caf::actor_id, const caf::type_erased_tuple&)> timer_hook_;
  std::function<void(host_index, const caf::strong_actor_ptr&)> born_;
  std::function<void(caf::actor_id)> ended_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> closing_{false};
  std::atomic<std::uint64_t> resumed_{0};
  std::atomic<std::size_t> live_actors_{0};
};

} // namespace shoal::netem
