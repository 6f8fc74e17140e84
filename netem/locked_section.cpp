#include "netem/locked_section.hpp"

#include "netem/message_table.hpp"

#include <utility>

namespace shoal::netem {

thread_local constinit const reporting_mutex* reporting_mutex::speaking_for = nullptr;

void reporting_mutex::stop_reporting() {
  locked_section last(*this);
  reporting_ = false;
  last.take_turn(); // waits for the earlier turns
}

void locked_section::report(std::unique_ptr<transfer_record> what) {
  if (!on_.reporting() || !on_.on_transfer_) return;
  take_turn();
  later().reports.emplace_back(std::move(what));
}

void locked_section::destroy_later(message_under_way&& what) {
  destroy_later(std::move(what.element));
  destroy_later(std::move(what.address));
}

void locked_section::wait_for_turn() {
  ++on_.waiting_;
  {
    std::unique_lock lock(on_.turn_mutex_);
    on_.turn_changed_.wait(lock, [this] { return on_.turn_.load() == turn_; });
  }
  --on_.waiting_;
}

void locked_section::give_reports() {
  if (has_turn_ && on_.turn_.load(std::memory_order_acquire) != turn_) wait_for_turn();
  const auto* before = std::exchange(reporting_mutex::speaking_for, &on_);
  if (first_) on_.on_event_(*first_);
  if (later_) {
    for (const auto& each : later_->reports)
      if (const auto* event = std::get_if<delivered_event>(&each))
        on_.on_event_(*event);
      else
        on_.on_transfer_(*std::get<std::unique_ptr<transfer_record>>(each));
  }
  reporting_mutex::speaking_for = before;
  if (!has_turn_) return;
  on_.turn_.store(turn_ + 1);
  if (on_.waiting_.load() == 0) return;
  // A thread that has counted itself in waiting_ either sees the new turn or already waits for the
  // notification.
  { std::lock_guard lock(on_.turn_mutex_); }
  on_.turn_changed_.notify_all();
}

} // namespace shoal::netem
