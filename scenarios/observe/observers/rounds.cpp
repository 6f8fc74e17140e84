#include "actors/averaging/observations.hpp"
#include "actors/data/sample_ranges.hpp"
#include "actors/pipeline/observations.hpp"
#include "actors/training/observations.hpp"
#include "scenarios/observe/observers/all.hpp"

#include <limits>
#include <unordered_map>

namespace shoal::scenarios::observing {

namespace {

class rounds_observer final : public run_observer {
public:
  explicit rounds_observer(run_books& books) : books_(books) {}

  void on_observation(const seen_observation& seen) override {
    if (const auto* x = actors::get_if<actors::trained>(&seen.what)) {
      if (const auto found = computed_.find(seen.peer); found != computed_.end()) {
        found->second.samples += actors::index_count(x->samples);
        found->second.loss_sum += x->loss_sum;
      }
    } else if (const auto* x = actors::get_if<actors::contributed>(&seen.what)) {
      double loss = std::numeric_limits<double>::quiet_NaN();
      if (const auto found = computed_.find(seen.peer); found != computed_.end()) {
        if (found->second.samples > 0)
          loss = found->second.loss_sum / static_cast<double>(found->second.samples);
        // The second of two rounds is about the same samples.
        if (!x->first_of_two) found->second = {};
      }
      books_.rounds.contributed(seen.time, seen.peer, *x, loss);
    } else if (const auto* x = actors::get_if<actors::round_ended>(&seen.what)) {
      books_.rounds.ended(seen.time, seen.peer, *x);
    } else if (const auto* x = actors::get_if<actors::batch_stepped>(&seen.what)) {
      books_.samples += actors::index_count(x->samples);
    } else if (const auto* x = actors::get_if<actors::phase_changed>(&seen.what)) {
      // A peer that downloads has thrown away what it computed.
      if (const auto found = computed_.find(seen.peer);
          x->phase == actors::peer_phase::downloading && found != computed_.end())
        found->second = {};
    }
  }
  void on_peer_started(const seen_peer& seen) override { computed_[seen.peer] = {}; }
  void on_peer_left(const seen_peer& seen) override { books_.rounds.killed(seen.time, seen.peer); }

  void on_round(const swarm_round& what) override {
    books_.samples += samples_included(what);
    if (!what.unfinished && what.outcome != actors::outcome::failed)
      books_.values.add_round(to_seconds(what.ended - what.started));
  }

  void set_metrics(duration) override {
    const round_counts& rounds = books_.rounds.counts();
    const auto set = [&](metric which, std::uint64_t value) {
      books_.values.set(which, static_cast<double>(value));
    };
    set(metric::samples, books_.samples);
    set(metric::rounds_ok, rounds.of(actors::outcome::ok));
    set(metric::rounds_partial, rounds.of(actors::outcome::partial));
    set(metric::rounds_split, rounds.of(actors::outcome::split));
    set(metric::rounds_failed, rounds.of(actors::outcome::failed));
    for (const auto& [reason, count] : rounds.by_reason)
      books_.values.set(metric_by_label::rounds, reason, count);
  }

  void finish(const end_facts&, summary& into) override {
    const round_counts& rounds = books_.rounds.counts();
    into.samples = books_.samples;
    into.rounds = {rounds.of(actors::outcome::ok),
                   rounds.of(actors::outcome::partial),
                   rounds.of(actors::outcome::split),
                   rounds.of(actors::outcome::failed),
                   rounds.by_reason,
                   rounds.completed > 0 ? std::optional(rounds.completed_seconds /
                                                        static_cast<double>(rounds.completed))
                                        : std::nullopt};
  }

private:
  /// A peer's work since its last contribution.
  struct work {
    std::uint64_t samples = 0;
    double loss_sum = 0;
  };

  run_books& books_;
  std::unordered_map<actors::peer_id, work> computed_; // never iterated
};

} // namespace

result<std::unique_ptr<run_observer>> rounds(run_books& books) {
  return std::unique_ptr<run_observer>(std::make_unique<rounds_observer>(books));
}

} // namespace shoal::scenarios::observing
