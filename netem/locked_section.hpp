// A lock under which no foreign code runs: callbacks and destructors wait until the lock is
// released.
// - Reports go to the callbacks after the lock is released, one at a time, in the order in which
//   sections held the lock.
// - Messages, addresses and observers are destroyed after the reports, since their destructors may
//   call the holder of the lock.
//
// The unlock() of a section with reports returns after the reports were given. A callback may begin
// sections of its own; their reports are given at once.
#pragma once

#include "netem/events.hpp"

#include <caf/actor_control_block.hpp>
#include <caf/attachable.hpp>
#include <caf/mailbox_element.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <variant>
#include <vector>

namespace shoal::netem {

struct message_under_way;

/// The mutex, the callbacks, and the order of reports.
class reporting_mutex {
public:
  using event_callback = std::function<void(const delivered_event&)>;
  using transfer_callback = std::function<void(const transfer_record&)>;

  /// An empty callback is not called.
  reporting_mutex(event_callback on_event, transfer_callback on_transfer)
      : on_event_(std::move(on_event)), on_transfer_(std::move(on_transfer)),
        reporting_(static_cast<bool>(on_event_)) {}

  bool wants_transfers() const noexcept { return static_cast<bool>(on_transfer_); }
  /// True while events are reported.
  bool reporting() const noexcept { return reporting_.load(std::memory_order_relaxed); }
  /// Ends all reports. When the function returns, no callback is running.
  void stop_reporting();

  // Sections that report nothing and destroy nothing can use std::lock_guard.
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

private:
  friend class locked_section;

  /// The mutex whose reports this thread is giving now.
  static thread_local constinit const reporting_mutex* speaking_for;

  std::mutex mutex_;
  event_callback on_event_;
  transfer_callback on_transfer_;
  std::atomic<bool> reporting_;
  std::uint64_t next_turn_ = 0; // guarded by mutex_
  std::atomic<std::uint64_t> turn_{0};
  std::atomic<std::uint32_t> waiting_{0};
  std::mutex turn_mutex_;
  std::condition_variable turn_changed_;
};

class locked_section {
public:
  explicit locked_section(reporting_mutex& on) : on_(on) { on_.mutex_.lock(); }
  ~locked_section() {
    if (locked_) unlock();
  }
  locked_section(const locked_section&) = delete;

  void report(const delivered_event& what) {
    if (!on_.reporting()) return;
    take_turn();
    if (first_ || later_)
      later().reports.emplace_back(what);
    else
      first_ = what;
  }
  void report(std::unique_ptr<transfer_record> what);

  void destroy_later(caf::mailbox_element_ptr what) { later().dead.emplace_back(std::move(what)); }
  void destroy_later(caf::strong_actor_ptr what) { later().dead.emplace_back(std::move(what)); }
  void destroy_later(caf::attachable_ptr what) { later().dead.emplace_back(std::move(what)); }
  void destroy_later(message_under_way&& what);

  /// Releases the lock, gives the reports, and then destroys. Requires: not called before.
  void unlock() {
    locked_ = false;
    on_.mutex_.unlock();
    if (first_ || later_ || has_turn_) give_reports();
    later_.reset();
  }

private:
  friend class reporting_mutex;

  /// Most sections need none of this.
  struct work {
    /// The reports after the first one.
    std::vector<std::variant<delivered_event, std::unique_ptr<transfer_record>>> reports;
    std::vector<std::variant<caf::mailbox_element_ptr, caf::strong_actor_ptr, caf::attachable_ptr>>
        dead;
  };

  work& later() {
    if (!later_) later_ = std::make_unique<work>();
    return *later_;
  }

  /// Sections inside a callback have no turn of their own: they report within the turn of their
  /// caller.
  void take_turn() {
    if (has_turn_ || reporting_mutex::speaking_for == &on_) return;
    turn_ = on_.next_turn_++;
    has_turn_ = true;
  }
  void give_reports();
  void wait_for_turn();

  reporting_mutex& on_;
  bool locked_ = true;
  bool has_turn_ = false;
  std::uint64_t turn_ = 0;
  std::optional<delivered_event> first_;
  std::unique_ptr<work> later_;
};

} // namespace shoal::netem
