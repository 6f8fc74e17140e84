#include "netem/wire/pacer.hpp"

#include <algorithm>
#include <chrono>

namespace shoal::netem::wire {

namespace {

/// A timer may be late. The pacer makes up for at most this much.
constexpr duration catch_up = std::chrono::milliseconds(5);

} // namespace

void pacer::put(host_link& to, bool bulk, frame what, duration now) {
  if (!bulk || !paces()) return to.send(bulk, std::move(what), now);
  to.waiting_bytes += what.size();
  to.waiting.push_back(std::move(what));
}

std::optional<duration> pacer::pump(std::vector<std::shared_ptr<host_link>>& links, duration now) {
  if (!paces() || planned_) return {};
  line_free_ = std::max(line_free_, now - catch_up);
  while (line_free_ <= now) {
    const auto next =
        std::find_if(links.begin(), links.end(), [](const auto& l) { return !l->waiting.empty(); });
    if (next == links.end()) return {};
    const auto to = *next;
    auto what = std::move(to->waiting.front());
    to->waiting.pop_front();
    to->waiting_bytes -= what.size();
    line_free_ += from_seconds(8 * static_cast<double>(what.size()) / (paced_share * uplink_));
    // Next time, the other links come first.
    std::rotate(next, next + 1, links.end());
    to->send(true, std::move(what), now);
  }
  planned_ = true;
  return line_free_;
}

} // namespace shoal::netem::wire
