#include "actors/experts/observations.hpp"
#include "scenarios/observe/observers/all.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

namespace shoal::scenarios::observing {

namespace {

/// The use of each expert of a mixture, and what became of it.
class experts_observer final : public run_observer {
public:
  explicit experts_observer(run_books& books) : books_(books) {}

  void on_observation(const seen_observation& seen) override {
    if (const auto* held = actors::get_if<actors::expert_held>(&seen.what)) {
      auto& one = experts_[held->which];
      one.host = books_.peers.name_of(seen.peer);
      one.steps = held->steps;
      ++(held->revived ? one.revived : one.begun);
    } else if (const auto* batch = actors::get_if<actors::expert_batch_done>(&seen.what)) {
      auto& one = experts_[batch->which];
      (batch->backward ? one.rows_back : one.rows) += batch->rows;
      if (!batch->backward) return;
      ++one.steps;
      one.staleness += batch->staleness;
      one.requests += batch->requests;
      one.last_step = seen.time;
    } else if (const auto* gone = actors::get_if<actors::expert_given_up>(&seen.what)) {
      ++experts_[gone->which].given_up;
    } else if (const auto* lost = actors::get_if<actors::expert_call_lost>(&seen.what)) {
      ++experts_[lost->which].calls_lost;
    }
  }

  result<void> close() override {
    if (experts_.empty()) return {};
    std::string out =
        "expert,host,steps,rows,rows_back,staleness,calls_lost,begun,revived,given_up,"
        "last_step\n";
    for (const auto& [which, one] : experts_)
      out += fmt::format("{},{},{},{},{},{:.3f},{},{},{},{},{:.3f}\n", actors::to_text(which),
                         one.host, one.steps, one.rows, one.rows_back,
                         static_cast<double>(one.staleness) /
                             static_cast<double>(std::max<std::uint64_t>(1, one.requests)),
                         one.calls_lost, one.begun, one.revived, one.given_up,
                         to_seconds(one.last_step));
    return books_.directory->write("experts.csv", out);
  }

private:
  struct expert {
    std::string host; // the last one that took it
    std::uint64_t steps = 0, rows = 0, rows_back = 0, staleness = 0, requests = 0, calls_lost = 0,
                  begun = 0, revived = 0, given_up = 0;
    duration last_step{};
  };
  run_books& books_;
  std::map<actors::expert_id, expert> experts_;
};

} // namespace

result<std::unique_ptr<run_observer>> experts(run_books& books) {
  return std::unique_ptr<run_observer>(std::make_unique<experts_observer>(books));
}

} // namespace shoal::scenarios::observing
