#include "netem/coordinator.hpp"

#include "kernels/base/check.hpp"
#include "netem/thread_sanitizer.hpp"

#include <caf/actor_cast.hpp>
#include <caf/logger.hpp>
#include <caf/scheduled_actor.hpp>
#include <caf/sec.hpp>
#include <caf/system_messages.hpp>

#include <algorithm>

#ifndef SHOAL_WORK_METER // the program of tests/bench/parallel_bound has another one
namespace shoal::netem {
/// Lives as long as work of one host at one virtual time. `wakes`: the work makes an actor of this
/// host ready.
struct work_meter {
  work_meter(host_index, std::int64_t) {}
  static void wakes(host_index) {}
};
} // namespace shoal::netem
#endif

namespace shoal::netem {

namespace {

thread_local host_index running_host = no_host;
constexpr host_index never_seen = no_host - 1;

std::uint64_t request_key(caf::actor_id requester, caf::message_id id) {
  // Request ids count up for each actor. The priority bits above would give one request two keys.
  return (requester << 32) ^ (id.integer_value() & 0xffffffff);
}

duration since_start(caf::actor_clock::time_point when) {
  return when.time_since_epoch();
}

} // namespace

system_config::system_config(time_mode mode, unsigned workers) : mode_(mode), workers_(workers) {
  load<coordinator>();
  set("scheduler.max-throughput", std::size_t{1});
  set("logger.verbosity", caf::atom("quiet"));
}

acting_as::acting_as(host_index host) noexcept : before_(std::exchange(running_host, host)) {}
acting_as::~acting_as() {
  running_host = before_;
}

// -- event_clock ----------------------------------------------------------------------------------

event_clock::time_point event_clock::now() const noexcept {
  return time_point{owner_.now()};
}

void event_clock::set_ordinary_timeout(time_point when, caf::abstract_actor* self,
                                       caf::atom_value type, std::uint64_t id) {
  event what;
  what.when = since_start(when);
  what.receiver = caf::actor_cast<caf::strong_actor_ptr>(self);
  what.element =
      caf::make_mailbox_element(nullptr, caf::make_message_id(), {}, caf::timeout_msg{type, id});
  what.owner = self->id();
  owner_.push(std::move(what));
}

void event_clock::set_multi_timeout(time_point when, caf::abstract_actor* self,
                                    caf::atom_value type, std::uint64_t id) {
  set_ordinary_timeout(when, self, type, id);
}

void event_clock::set_request_timeout(time_point when, caf::abstract_actor* self,
                                      caf::message_id id) {
  event what;
  what.when = since_start(when);
  what.receiver = caf::actor_cast<caf::strong_actor_ptr>(self);
  what.element =
      caf::make_mailbox_element(nullptr, id, {}, caf::make_error(caf::sec::request_timeout));
  what.owner = self->id();
  const auto guard = owner_.lock();
  owner_.requests_[request_key(self->id(), id)] = owner_.events_.push(std::move(what));
  owner_.events_changed_.notify_one();
}

void event_clock::cancel_ordinary_timeout(caf::abstract_actor*, caf::atom_value) {}
void event_clock::cancel_request_timeout(caf::abstract_actor* self, caf::message_id id) {
  owner_.answered(self->id(), id);
}
void event_clock::cancel_timeouts(caf::abstract_actor*) {}

void event_clock::schedule_message(time_point when, caf::strong_actor_ptr receiver,
                                   caf::mailbox_element_ptr element) {
  event what;
  what.when = since_start(when);
  what.on_behalf = coordinator::current_host();
  if (owner_.is_local(receiver)) what.owner = receiver->id();
  what.receiver = std::move(receiver);
  what.element = std::move(element);
  owner_.push(std::move(what));
}

void event_clock::schedule_message(time_point, caf::group, caf::strong_actor_ptr, caf::message) {
  check_failed(__FILE__, __LINE__, "no groups", "CAF groups are not part of any world");
}

void event_clock::cancel_all() {
  std::vector<event> dropped;
  const auto guard = owner_.lock(); // released before the dropped events are destroyed
  dropped = owner_.events_.take_all();
  owner_.requests_.clear();
}

// -- coordinator ----------------------------------------------------------------------------------

caf::actor_system::module* coordinator::make(caf::actor_system& system, caf::detail::type_list<>) {
  return new coordinator(system);
}

coordinator& coordinator::of(caf::actor_system& system) {
  auto* self = dynamic_cast<coordinator*>(&system.scheduler());
  SHOAL_CHECK(self != nullptr, "the actor_system was not made from a netem::system_config");
  return *self;
}

coordinator::coordinator(caf::actor_system& system)
    : abstract_coordinator(system), clock_(*this), unit_(&system, this),
      wall_start_(std::chrono::steady_clock::now()) {
  auto* config = dynamic_cast<const system_config*>(&system.config());
  SHOAL_CHECK(config != nullptr, "the actor_system was not made from a netem::system_config");
  mode_ = config->mode();
  worker_count_ = config->workers();
}

coordinator::~coordinator() = default;

duration coordinator::now() const noexcept {
  if (mode_ == time_mode::virtual_time)
    return duration{virtual_now_.load(std::memory_order_relaxed)};
  return std::chrono::steady_clock::now() - wall_start_;
}

void coordinator::push(event&& what) {
  const auto guard = lock();
  events_.push(std::move(what));
  events_changed_.notify_one();
}

event_handle coordinator::at(duration when, std::function<void()> action) {
  event what;
  what.when = std::max(when, now());
  what.action = std::move(action);
  const auto guard = lock();
  auto handle = events_.push(std::move(what));
  events_changed_.notify_one();
  return handle;
}

void coordinator::arrive_at(duration when, std::uint32_t number) {
  when = std::max(when, now());
  const auto guard = lock();
  events_.push_arrival(when, number);
  events_changed_.notify_one();
}

bool coordinator::cancel(event_handle handle) {
  std::optional<event> dropped;
  const auto guard = lock(); // released before the dropped event is destroyed
  dropped = events_.take(handle);
  return dropped.has_value();
}

host_index coordinator::current_host() noexcept {
  return running_host;
}

void coordinator::as_host(host_index host, const std::function<void()>& action) {
  acting_as as{host};
  action();
}

host_index coordinator::host_of(caf::actor_id id) const {
  const auto guard = lock();
  if (id >= hosts_.size() || hosts_[id] == never_seen) return no_host;
  return hosts_[id];
}

void coordinator::answered(caf::actor_id requester, caf::message_id response) {
  std::optional<event> dropped;
  const auto guard = lock(); // released before the dropped event is destroyed
  auto found = requests_.find(request_key(requester, response));
  if (found == requests_.end()) return;
  dropped = events_.take(found->second);
  requests_.erase(found);
}

void coordinator::forget_timers(caf::actor_id id) {
  std::vector<event> dropped;
  const auto guard = lock(); // released before the dropped events are destroyed
  dropped = events_.take_owned(id);
  for (auto& what : dropped)
    if (what.element->mid.is_response()) requests_.erase(request_key(id, what.element->mid));
}

bool coordinator::is_local(const caf::strong_actor_ptr& actor) {
  return actor->node() == system().node();
}

std::size_t coordinator::pending_events() const {
  const auto guard = lock();
  return events_.size();
}

void coordinator::enqueue(caf::resumable* job) {
  work_meter::wakes(running_host);
  host_index born_on = never_seen;
  caf::scheduled_actor* actor = nullptr;
  {
    const auto guard = lock();
    if (job->subtype() == caf::resumable::scheduled_actor) {
      actor = static_cast<caf::scheduled_actor*>(job);
      if (actor->id() >= hosts_.size()) hosts_.resize(actor->id() + 1, never_seen);
      auto& host = hosts_[actor->id()];
      if (host == never_seen) {
        host = born_on = running_host;
        if (host != no_host) ++live_actors_;
      }
    }
  }
  // The hook must run before a worker can take the job and end the actor. It must run without the
  // lock, since the fabric calls this class under its own lock.
  if (born_on < never_seen && born_) born_(born_on, caf::strong_actor_ptr{actor->ctrl()});
  {
    const auto guard = lock();
    make_ready(job);
  }
  if (mode_ == time_mode::wall_clock) work_ready_.notify_one();
}

/// Requires: mutex_ is held.
void coordinator::make_ready(caf::resumable* job) {
  if (!held_.empty() && job->subtype() == caf::resumable::scheduled_actor) {
    const auto id = static_cast<caf::scheduled_actor*>(job)->id();
    if (const auto found = held_.find(hosts_[id]); found != held_.end())
      return found->second.push_back(job);
  }
  jobs_.push_back(job);
}

void coordinator::hold(host_index host) {
  const auto guard = lock();
  if (!held_.try_emplace(host).second) return;
  auto all = std::exchange(jobs_, {});
  for (auto* job : all) make_ready(job);
}

void coordinator::release(host_index host) {
  {
    const auto guard = lock();
    const auto found = held_.find(host);
    if (found == held_.end()) return;
    jobs_.insert(jobs_.end(), found->second.begin(), found->second.end());
    held_.erase(found);
  }
  if (mode_ == time_mode::wall_clock) work_ready_.notify_all();
}

void coordinator::resume(caf::resumable* job, unit& on) {
  caf::actor_id id = 0;
  host_index host = no_host;
  if (job->subtype() == caf::resumable::scheduled_actor) {
    auto* actor = static_cast<caf::scheduled_actor*>(job);
    id = actor->id();
    host = running_host = host_of(id);
    // CAF's first resume makes the behavior and then handles a message, which may have come
    // meanwhile.
    if (!actor->getf(caf::abstract_actor::is_initialized_flag)) actor->activate(&on);
    // The answer is noted here, because answers within a host do not pass the fabric.
    auto* next = actor->peek_at_next_mailbox_element();
#ifdef SHOAL_THREAD_SANITIZER
    // A message that arrives between this look and its handling would not be announced to
    // ThreadSanitizer.
    while (next == nullptr && actor->alive()) {
      if (actor->mailbox().try_block()) {
        running_host = no_host;
        return caf::intrusive_ptr_release(job);
      }
      next = actor->peek_at_next_mailbox_element();
    }
#endif
    after_arrival();
    if (next != nullptr && next->mid.is_response()) answered(id, next->mid);
  }
  ++resumed_;
  auto how = [&] {
    const work_meter meter(host, virtual_now_);
    return job->resume(&on, 1);
  }();
  running_host = no_host;
  switch (how) {
  case caf::resumable::resume_later: {
    const auto guard = lock();
    make_ready(job);
    if (mode_ == time_mode::wall_clock) work_ready_.notify_one();
    break;
  }
  case caf::resumable::done:
    if (id != 0) forget_timers(id);
    if (host != no_host) {
      --live_actors_;
      if (ended_) ended_(id);
    }
    caf::intrusive_ptr_release(job);
    break;
  case caf::resumable::awaiting_message:
    caf::intrusive_ptr_release(job);
    break;
  default:
    break;
  }
}

void coordinator::arrived(std::uint32_t number) {
  const work_meter meter(no_host, virtual_now_);
  if (arrived_) arrived_(number);
}

void coordinator::deliver(event& what) {
  if (what.action) {
    const work_meter meter(no_host, virtual_now_);
    what.action();
    return;
  }
  auto lives_on = what.owner == 0 ? no_host : host_of(what.owner);
  if (what.owner != 0 && what.element->mid.is_response()) {
    const auto guard = lock();
    requests_.erase(request_key(what.owner, what.element->mid));
  }
  if (timer_hook_ && lives_on != no_host) timer_hook_(what.owner, what.element->content());
  // The actor that set a timer causes its message, so the timer arrives on behalf of that actor's
  // host.
  running_host = what.on_behalf != no_host ? what.on_behalf : lives_on;
  what.receiver->enqueue(std::move(what.element), nullptr);
  running_host = no_host;
}

void coordinator::drain() {
  // With a logger, CAF notes under a lock before and after each message which actor is running. It
  // sets the logger of this thread at each spawn, though nothing is logged.
  caf::logger::set_current_actor_system(nullptr);
  while (!jobs_.empty()) {
    auto* job = jobs_.front();
    jobs_.pop_front();
    resume(job, unit_);
  }
}

void coordinator::settle() {
  if (mode_ == time_mode::virtual_time) return drain();
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return workers_.empty() || (jobs_.empty() && busy_workers_ == 0); });
}

duration coordinator::run(duration limit) {
  stop_ = false;
  if (mode_ == time_mode::virtual_time) {
    for (;;) {
      drain();
      if (stop_) break;
      if (hook_ && std::exchange(hook_due_, false)) {
        const work_meter meter(no_host, virtual_now_);
        hook_();
      }
      if (!jobs_.empty()) continue;
      if (events_.empty()) break;
      auto next = events_.next_time();
      if (next > limit) {
        virtual_now_ = limit.count();
        break;
      }
      virtual_now_.store(std::max(now(), next).count(), std::memory_order_relaxed);
      if (const auto number = events_.pop_arrival()) {
        arrived(*number);
        continue;
      }
      auto what = events_.pop();
      deliver(what);
    }
    return now();
  }
  while (!stop_ && now() < limit) {
    if (hook_) hook_();
    std::unique_lock lock(mutex_);
    auto until = limit;
    if (!events_.empty()) until = std::min(until, events_.next_time());
    if (until > now()) {
      // The wait is bounded, because a signal handler that requests a stop cannot notify.
      auto wake = std::min(until, now() + std::chrono::milliseconds(20));
      events_changed_.wait_until(lock, wall_start_ + wake);
      continue;
    }
    if (events_.empty()) continue;
    if (const auto number = events_.pop_arrival()) {
      lock.unlock();
      arrived(*number);
      continue;
    }
    auto what = events_.pop();
    lock.unlock();
    deliver(what);
  }
  return now();
}

void coordinator::request_stop() noexcept {
  stop_ = true;
}

void coordinator::work(std::size_t worker) {
  unit on(&system(), this);
  std::unique_lock lock(mutex_);
  // An actor can be ready again before its worker has let go of it. No other worker takes it until
  // then.
  auto next = [this] {
    return std::find_if(jobs_.begin(), jobs_.end(), [this](caf::resumable* job) {
      return std::find(running_.begin(), running_.end(), job) == running_.end();
    });
  };
  for (;;) {
    work_ready_.wait(lock, [&] { return closing_ || next() != jobs_.end(); });
    if (closing_) return;
    auto found = next();
    auto* job = *found;
    jobs_.erase(found);
    running_[worker] = job;
    ++busy_workers_;
    lock.unlock();
    resume(job, on);
    lock.lock();
    running_[worker] = nullptr;
    if (!jobs_.empty()) work_ready_.notify_one();
    if (--busy_workers_ == 0 && jobs_.empty()) idle_.notify_all();
  }
}

void coordinator::start() {
  // CAF's printer actor is not started: it would be a detached thread, and CAF's aout prints to
  // stdout.
  if (mode_ == time_mode::wall_clock) running_.resize(worker_count_);
  if (mode_ == time_mode::wall_clock)
    for (unsigned i = 0; i < worker_count_; ++i) workers_.emplace_back([this, i] { work(i); });
}

void coordinator::stop() {
  {
    const auto guard = lock();
    closing_ = true;
  }
  work_ready_.notify_all();
  for (auto& worker : workers_) worker.join();
  workers_.clear();
  idle_.notify_all();
  clock_.cancel_all();
  while (!held_.empty()) release(held_.begin()->first);
  // No actor's code runs any more. The cleanup of one actor can make others ready, as its requests
  // bounce.
  while (!jobs_.empty()) {
    auto* job = jobs_.front();
    jobs_.pop_front();
    cleanup_and_release(job);
  }
  clock_.cancel_all();
}

} // namespace shoal::netem
