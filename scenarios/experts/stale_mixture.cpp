#include "scenarios/experts/stale_mixture.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/learn/feed_forward.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

namespace shoal::scenarios {

namespace {

struct trained {
  std::vector<float> parameters, state;
  std::uint64_t steps = 0;

  explicit trained(std::vector<float> initial = {})
      : parameters(std::move(initial)), state(kernels::amsgrad_state_size(parameters.size())) {}
  void step(const kernels::amsgrad_config& how, std::span<const float> gradient) {
    kernels::amsgrad_step(how, ++steps, gradient, parameters, state);
  }
};

struct local_expert : trained {
  using trained::trained;
  std::vector<float> gradient;
  std::uint64_t inputs = 0, first_pass = 0; // since the last step
};

class run {
public:
  run(const stale_mixture& what, std::span<const std::byte> training,
      std::span<const std::byte> held_out)
      : what_(what), training_(training), held_out_(held_out),
        net_(what.ends, {.layers = what.layers, .grid = {what.experts}, .balance = what.balance}),
        block_(learn::make_feed_forward(what.ends->width())),
        trunk_(net_.initial_parameters(what.seed)), failures_(stream(what.seed, "stale.failures")),
        passes_(what.layers) {
    for (std::size_t e = 0; e < what.layers * what.experts; ++e) {
      experts_.emplace_back(
          block_->initial_parameters(stream(what.seed, "stale.expert", e).next()));
      experts_.back().gradient.resize(block_->parameter_count());
    }
    for (std::size_t i = 0; i < what.trainers; ++i) {
      delays_.push_back(stream(what.seed, "stale.delay", i));
      batches_.push_back(stream(what.seed, "stale.batch", i));
    }
    pending_.resize(what.trainers);
  }

  stale_figures go() {
    evaluate();
    for (std::size_t i = 0; i < what_.trainers; ++i) begin(i, 0);
    const auto settled = 10 * what_.trainers;
    double total = 0;
    while (trunk_.steps < what_.updates) {
      const auto [time, trainer] = finishes_.top();
      finishes_.pop();
      const auto staleness = trunk_.steps - pending_[trainer].since;
      if (trunk_.steps == settled) out_.age_before = age_of_pending();
      if (trunk_.steps >= settled) {
        total += static_cast<double>(staleness);
        ++out_.counted;
        out_.most_stale = std::max(out_.most_stale, staleness);
      }
      update(pending_[trainer].gradient);
      if (trunk_.steps % what_.evaluate_every == 0 || trunk_.steps == what_.updates) {
        if (what_.proceed && !what_.proceed(trunk_.steps)) break;
        evaluate();
      }
      begin(trainer, time);
    }
    if (out_.counted > 0) out_.mean_staleness = total / static_cast<double>(out_.counted);
    out_.age_after = age_of_pending();
    return std::move(out_);
  }

private:
  struct pending {
    std::vector<float> gradient; // the trunk's, and then that of the dense network's blocks
    std::uint64_t since = 0;     // updates when the gradient was computed
  };

  std::uint64_t age_of_pending() const {
    std::uint64_t out = 0;
    for (const auto& each : pending_) out += trunk_.steps - each.since;
    return out;
  }

  local_expert& expert(std::size_t layer, const kernels::expert_place& place) {
    return experts_[layer * what_.experts + place[0]];
  }

  /// The experts of a row with the largest logits, among those that do not fail.
  std::vector<learn::expert_choice> choose(std::span<const float> scores, bool may_fail) {
    std::vector<std::pair<float, std::uint32_t>> answering;
    for (std::uint32_t e = 0; e < what_.experts; ++e)
      if (!may_fail || what_.failure == 0 || failures_.uniform() >= what_.failure)
        answering.emplace_back(-scores[e], e);
    const auto count = std::min(what_.chosen, answering.size());
    std::partial_sort(answering.begin(), answering.begin() + static_cast<std::ptrdiff_t>(count),
                      answering.end());
    std::vector<learn::expert_choice> out;
    for (std::size_t i = 0; i < count; ++i) out.push_back({{answering[i].second}});
    return out;
  }

  void update_experts(std::size_t layer) {
    const auto pass = ++passes_[layer];
    for (std::uint32_t e = 0; e < what_.experts; ++e) {
      auto& one = expert(layer, {e});
      if (one.inputs == 0 ||
          (one.inputs < what_.update_inputs && pass - one.first_pass < what_.update_passes))
        continue;
      one.step(what_.optimizer, one.gradient);
      std::ranges::fill(one.gradient, 0.0F);
      one.inputs = 0;
      ++out_.expert_steps;
    }
  }

  void forward(learn::mixture_pass& pass, bool trains) {
    const auto width = what_.ends->width();
    while (pass.layer() < what_.layers) {
      const auto layer = pass.layer();
      if (trains && !what_.dense()) update_experts(layer);
      std::vector<std::vector<learn::expert_choice>> chosen;
      for (std::size_t n = 0; n < pass.rows(); ++n)
        chosen.push_back(choose(pass.scores().subspan(n * what_.experts, what_.experts), trains));
      for (const auto& [place, rows] : learn::rows_by_expert(chosen)) {
        auto& one = expert(layer, place);
        if (trains && one.inputs == 0) one.first_pass = passes_[layer];
        if (trains) one.inputs += rows.size();
        const auto y = block_->forward(one.parameters, pass.inputs_of(rows));
        SHOAL_CHECK(y.ok(), "an expert computes rows of its width");
        for (std::size_t i = 0; i < rows.size(); ++i) {
          const auto first = y->begin() + static_cast<std::ptrdiff_t>(i * width);
          chosen[rows[i].row][rows[i].choice].output.assign(
              first, first + static_cast<std::ptrdiff_t>(width));
        }
      }
      pass.advance(std::move(chosen));
    }
  }

  void begin(std::size_t trainer, double now) {
    std::vector<std::byte> batch;
    const auto bytes = what_.ends->sample_bytes();
    for (std::size_t n = 0; n < what_.batch; ++n) {
      const auto one =
          training_.subspan(batches_[trainer].below(training_.size() / bytes) * bytes, bytes);
      batch.insert(batch.end(), one.begin(), one.end());
    }
    learn::mixture_pass pass(net_, trunk_.parameters, std::move(batch));
    forward(pass, true);
    loss_sum_ += pass.leave().loss;
    ++losses_;
    std::vector<float> of_blocks(what_.dense() ? what_.layers * block_->parameter_count() : 0);
    const auto width = what_.ends->width();
    while (!pass.is_over()) {
      const auto layer = pass.layer();
      for (const auto& [place, rows] : learn::rows_by_expert(pass.chosen())) {
        auto& one = expert(layer, place);
        const auto into = what_.dense()
                              ? std::span(of_blocks).subspan(layer * block_->parameter_count(),
                                                             block_->parameter_count())
                              : std::span(one.gradient);
        const auto back =
            block_->backward(one.parameters, pass.inputs_of(rows), pass.gradients_of(rows), into);
        SHOAL_CHECK(back.ok(), "an expert computes rows of its width");
        for (std::size_t i = 0; i < rows.size(); ++i) {
          const auto first = back->begin() + static_cast<std::ptrdiff_t>(i * width);
          pass.chosen()[rows[i].row][rows[i].choice].gradient.assign(
              first, first + static_cast<std::ptrdiff_t>(width));
        }
      }
      pass.retreat();
    }
    out_.unanswered += pass.unanswered();
    auto& mine = pending_[trainer];
    mine.gradient = pass.gradient();
    mine.gradient.insert(mine.gradient.end(), of_blocks.begin(), of_blocks.end());
    mine.since = trunk_.steps;
    finishes_.emplace(now + delays_[trainer].exponential(1), trainer);
  }

  void update(std::span<const float> gradient) {
    const auto trunk = trunk_.parameters.size();
    trunk_.step(what_.optimizer, gradient.first(trunk));
    if (!what_.dense()) return;
    for (std::size_t l = 0; l < what_.layers; ++l)
      experts_[l].step(what_.optimizer, gradient.subspan(trunk + l * block_->parameter_count(),
                                                         block_->parameter_count()));
  }

  void evaluate() {
    learn::mixture_pass pass(net_, trunk_.parameters, {held_out_.begin(), held_out_.end()});
    forward(pass, false);
    const auto judged = pass.judge();
    out_.curve.push_back(
        {trunk_.steps, losses_ > 0 ? loss_sum_ / static_cast<double>(losses_) : judged.loss,
         judged.loss, static_cast<double>(judged.right) / static_cast<double>(pass.rows())});
    loss_sum_ = 0;
    losses_ = 0;
  }

  const stale_mixture& what_;
  std::span<const std::byte> training_, held_out_;
  learn::mixture_network net_;
  std::shared_ptr<const learn::expert_block> block_;
  trained trunk_;
  std::vector<local_expert> experts_; // by layer
  rng failures_;
  std::vector<std::uint64_t> passes_; // training passes of each layer
  std::vector<rng> delays_, batches_;
  std::vector<pending> pending_;
  using finish = std::pair<double, std::size_t>;
  std::priority_queue<finish, std::vector<finish>, std::greater<>> finishes_;
  double loss_sum_ = 0;
  std::uint64_t losses_ = 0;
  stale_figures out_;
};

} // namespace

stale_figures run_stale_mixture(const stale_mixture& what, std::span<const std::byte> training,
                                std::span<const std::byte> held_out) {
  SHOAL_CHECK(!training.empty() && !held_out.empty() && what.chosen > 0 &&
                  what.chosen <= what.experts && what.trainers > 0 && what.batch > 0,
              "a run needs samples, trainers and experts");
  return run(what, training, held_out).go();
}

} // namespace shoal::scenarios
