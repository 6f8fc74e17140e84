#include "actors/data/sample_ranges.hpp"
#include "actors/pipeline/observations.hpp"
#include "scenarios/observe/observers/all.hpp"

#include <fmt/format.h>

#include <cmath>

namespace shoal::scenarios::observing {

namespace {

class contributions_observer final : public run_observer {
public:
  contributions_observer(run_books& books, std::unique_ptr<output_file> csv)
      : books_(books), csv_(std::move(csv)) {}

  void on_round(const swarm_round& what) override {
    if (what.first_of_two) return;
    for (std::uint32_t i = 0; i < what.members.size(); ++i) {
      const round_member& who = what.members[i];
      // A host of a stage has computed on samples that trainers hold. Its weight counts them.
      const std::uint64_t samples =
          books_.options.invariants.has_stages ? who.weight : actors::index_count(who.samples);
      if (!who.known || samples == 0 || !is_included(what, i)) continue;
      keep(what.ended, what.epoch, who.peer, samples, who.loss);
      if (books_.options.on_contribution) books_.options.on_contribution(what, samples);
    }
  }
  void on_observation(const seen_observation& seen) override {
    if (const auto* x = actors::get_if<actors::batch_stepped>(&seen.what))
      keep(seen.time, x->epoch, seen.peer, actors::index_count(x->samples), x->loss);
  }

  void flush() override {
    if (csv_) csv_->flush();
  }
  const std::optional<failure>* error() const override { return csv_ ? &csv_->error() : nullptr; }
  result<void> close() override { return csv_->commit(); }

private:
  void keep(duration time, std::uint64_t epoch, actors::peer_id peer, std::uint64_t samples,
            double loss) {
    const std::string host = books_.peers.name_of(peer);
    if (csv_)
      csv_->write(fmt::format("{:.9f},{},{},{},{},{}\n", to_seconds(time), epoch, peer, host,
                              samples, std::isfinite(loss) ? fmt::format("{}", loss) : ""));
    if (books_.options.listener != nullptr)
      books_.options.listener->contribution(time, host, samples, loss);
  }

  run_books& books_;
  std::unique_ptr<output_file> csv_;
};

} // namespace

result<std::unique_ptr<run_observer>> contributions(run_books& books) {
  auto csv = open_table(books, "contributions.csv", "time,epoch,peer,host,samples,loss_train\n");
  if (!csv) return failure{csv.error()};
  std::unique_ptr<run_observer> out;
  if (*csv || books.options.listener != nullptr || books.options.on_contribution)
    out = std::make_unique<contributions_observer>(books, std::move(*csv));
  return out;
}

} // namespace shoal::scenarios::observing
