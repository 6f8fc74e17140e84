// A CAF scheduler that serves virtual time and the wall clock. It resumes one message at a time,
// and knows the host of the running code (the current host). Ports use the current host as the
// sender.
//
// Virtual time: one thread, the caller of run(); the clock jumps from event to event. Wall clock:
// worker threads resume actors, and run() serves events when they are due.
//
// CAF 0.17.6 loads a scheduler as a module before it chooses its built-in policy; this makes the
// replacement possible.
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

/// Creates the coordinator with an actor system:
///   netem::system_config config{mode};
///   caf::actor_system system{config};
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

/// Makes this thread act on behalf of `host` during the object's life.
class acting_as {
public:
  explicit acting_as(host_index host) noexcept;
  ~acting_as();
  acting_as(const acting_as&) = delete;

private:
  host_index before_;
};

/// Serves CAF's timers and this scheduler's events from one queue. `now` starts at zero in both
/// modes.
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

  // -- for the world --------------------------------------------------

  time_mode mode() const noexcept { return mode_; }
  /// The time since the world began.
  duration now() const noexcept;

  /// Runs `action` at `when` on behalf of no host; at once if `when` is past.
  event_handle at(duration when, std::function<void()> action);
  bool cancel(event_handle handle);

  /// The host whose code is running; no_host outside of actors.
  static host_index current_host() noexcept;
  /// Runs `action` as if host `host` did it. Actors that it spawns live on that host.
  void as_host(host_index host, const std::function<void()>& action);

  /// Sets the hook that runs for each arrival that came to its time.
  void on_arrival(std::function<void(std::uint32_t number)> hook) { arrived_ = std::move(hook); }
  /// Runs the arrival hook with `number` at `when`; at once if `when` is past. An arrival cannot be
  /// cancelled, and costs less than at().
  void arrive_at(duration when, std::uint32_t number);

  /// Sets a hook that runs when all work of an instant is done, before time moves on. In virtual
  /// time the hook runs only after a call of instant_changed().
  void before_time_moves(std::function<void()> hook) { hook_ = std::move(hook); }
  /// Requires: virtual time.
  void instant_changed() noexcept { hook_due_ = true; }
  /// Sets a hook that runs when a scheduled message (a timer) is delivered to an actor.
  void on_timer(std::function<void(caf::actor_id, const caf::type_erased_tuple&)> hook) {
    timer_hook_ = std::move(hook);
  }
  /// Sets two hooks: `born` runs for each new actor before the actor first runs, `ended` runs when
  /// an actor of a host has ended.
  void on_actor(std::function<void(host_index, const caf::strong_actor_ptr&)> born,
                std::function<void(caf::actor_id)> ended) {
    born_ = std::move(born);
    ended_ = std::move(ended);
  }

  /// Runs until `limit`, or until a stop is requested. In virtual time, also stops when no event is
  /// left. Returns the time reached.
  duration run(duration limit);
  /// Makes run() return after the current event. Thread safety: any thread.
  void request_stop() noexcept;

  /// Suspends the actors of this host until release(); their messages wait in the mailboxes. An
  /// actor that is running now completes its current message.
  void hold(host_index host);
  void release(host_index host);

  /// The host of an actor; no_host for CAF's own actors.
  host_index host_of(caf::actor_id id) const;

  /// Handles all ready messages without moving the virtual time. On the wall clock, waits until the
  /// workers are idle. Requires: the caller is not an actor.
  void settle();

  std::uint64_t messages_resumed() const noexcept { return resumed_; }
  std::size_t pending_events() const;
  std::size_t live_actors() const noexcept { return live_actors_; }

  // -- for CAF --------------------------------------------------------

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

  /// Locks mutex_ on the wall clock. In virtual time one thread does everything.
  std::unique_lock<std::mutex> lock() const {
    return mode_ == time_mode::wall_clock ? std::unique_lock(mutex_)
                                          : std::unique_lock<std::mutex>();
  }
  void push(event&& what);
  /// Cancels the timer of a request that was answered. CAF never drops such timers.
  void answered(caf::actor_id requester, caf::message_id response);
  void make_ready(caf::resumable* job);
  void resume(caf::resumable* job, unit& on);
  void deliver(event& what);
  void arrived(std::uint32_t number);
  /// Runs ready jobs until none is left. Virtual time only.
  void drain();
  void work(std::size_t worker); // the loop of a worker thread
  bool is_local(const caf::strong_actor_ptr& actor);
  void forget_timers(caf::actor_id id);

  time_mode mode_;
  unsigned worker_count_;
  event_clock clock_;
  unit unit_;
  std::atomic<std::int64_t> virtual_now_{0};
  std::chrono::steady_clock::time_point wall_start_;

  mutable std::mutex mutex_; // on the wall clock, guards events_, jobs_, requests_ and hosts_
  std::condition_variable work_ready_, events_changed_, idle_;
  event_queue events_;
  std::deque<caf::resumable*> jobs_;
  std::vector<caf::resumable*> running_; // the job of each worker, wall clock only
  std::unordered_map<std::uint64_t, event_handle> requests_; // never iterated
  std::vector<host_index> hosts_;                            // by actor id
  std::map<host_index, std::deque<caf::resumable*>> held_;   // the jobs of held hosts' actors
  std::size_t busy_workers_ = 0;
  std::vector<std::thread> workers_;

  std::function<void()> hook_;
  bool hook_due_ = false;
  std::function<void(std::uint32_t)> arrived_;
  std::function<void(caf::actor_id, const caf::type_erased_tuple&)> timer_hook_;
  std::function<void(host_index, const caf::strong_actor_ptr&)> born_;
  std::function<void(caf::actor_id)> ended_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> closing_{false};
  std::atomic<std::uint64_t> resumed_{0};
  std::atomic<std::size_t> live_actors_{0};
};

} // namespace shoal::netem
