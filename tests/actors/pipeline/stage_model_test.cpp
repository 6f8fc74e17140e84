// actors/pipeline: a pipeline has the gradients of the whole model, although peers die. Each sample
// counts once in each stage.
#include "actors/pipeline/gradient_book.hpp"
#include "actors/pipeline/micro_batch.hpp"
#include "actors/pipeline/stage_model.hpp"
#include "actors/pipeline/stage_wiring.hpp"
#include "kernels/base/rng.hpp"
#include "tests/actors/pipeline/five_layers.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <vector>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using kind = micro_batch::task_kind;

namespace {

/// A pipeline without a network: a trainer and `peers` peers for each stage. At the `death`-th
/// event a peer dies: the one that the event is about.
class lab {
public:
  lab(std::uint32_t stages, std::uint64_t peers, std::uint64_t death)
      : model_(five_layers()), parameters_(parameters_of(*model_)), death_(death),
        cut_(stage_model::make(model_, even_cut(5, stages), read_batch).value()), wiring_(stages) {
    peer_id id = 100;
    for (std::uint32_t s = 0; s < stages; ++s)
      for (std::uint64_t i = 0; i < peers; ++i) {
        wiring_[s].join(++id);
        books_[s][id];
      }
  }

  const learn::decoder& model() const { return *model_; }
  const std::vector<float>& parameters() const { return parameters_; }

  /// Computes micro-batches of these sizes, some at once.
  void run(const std::vector<std::byte>& samples, const std::vector<std::uint64_t>& sizes) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const auto bytes = sizes[i] * (context + 1);
      const auto first = samples.begin() + static_cast<std::ptrdiff_t>(at);
      passes_.emplace_back(
          i, cut_->hops(),
          payload(std::vector<std::byte>(first, first + static_cast<std::ptrdiff_t>(bytes))),
          sizes[i]);
      at += bytes;
    }
    for (bool more = true; more;) {
      more = false;
      for (auto& pass : passes_)
        if (const auto due = pass.due(); !due.empty()) {
          more = true;
          work(pass, due.front());
        }
    }
    for (const auto& pass : passes_) CHECK(pass.done());
  }

  std::uint32_t hops_of(std::uint32_t stage) const { return cut_->hops_of(stage); }
  std::uint64_t events() const { return events_; }
  bool died() const { return died_; }
  double loss() const {
    double sum = 0;
    for (const auto& [number, loss] : losses_) sum += loss;
    return sum;
  }
  std::uint64_t samples_in(std::uint32_t stage) const {
    std::uint64_t out = 0;
    for (const auto& [peer, book] : books_.at(stage)) out += book.samples();
    return out;
  }
  std::vector<float> gradient() const {
    std::vector<float> out(parameters_.size());
    for (const auto& [stage, books] : books_) {
      const auto& tensors = cut_->tensors_of(stage);
      std::vector<float> sum(kernels::end_of(tensors));
      for (const auto& [peer, book] : books)
        for (std::size_t i = 0; i < book.sum().size(); ++i)
          sum[i] += static_cast<float>(book.sum()[i]);
      REQUIRE(learn::scatter_add(tensors, sum, model_->layout(), out));
    }
    return out;
  }

private:
  /// Counts an event of the protocol. True: the peer has died at it.
  bool dies(std::uint32_t stage, peer_id peer) {
    if (++events_ != death_) return false;
    died_ = true;
    books_[stage].erase(peer);
    wiring_[stage].leave(peer);
    for (auto& pass : passes_) pass.lost(peer);
    return true;
  }

  void work(micro_batch& pass, micro_batch::task what) {
    const auto stage = cut_->stage_of(what.hop);
    const bool backward = what.kind == kind::backward;
    const auto peer = wiring_[stage].choose(backward ? 2.5 : 1).value();
    pass.sent(what, peer);
    if (dies(stage, peer)) return; // with the task
    const auto own = learn::gather(model_->layout(), parameters_, cut_->tensors_of(stage)).value();
    const auto in = what.hop == 0 ? std::span<const float>{} : pass.input(what.hop).floats();
    if (!backward) {
      auto out = cut_->forward(what.hop, own, pass.samples().bytes(), pass.count(), in);
      REQUIRE(out.ok());
      if (dies(stage, peer)) return; // with the output
      REQUIRE(pass.answered(what, peer, payload(std::move(*out))));
      dies(stage, peer); // after the output
      return;
    }
    const bool head = what.hop + 1 == cut_->hops();
    std::vector<float> gradient(own.size());
    auto out = cut_->backward(what.hop, own, pass.samples().bytes(), pass.count(), in,
                              head ? std::span<const float>{} : pass.gradient(what.hop).floats(),
                              gradient);
    REQUIRE(out.ok());
    auto& book = books_[stage].at(peer);
    book.hold({1, pass.number()}, what.hop, pass.count(), std::move(gradient));
    if (head) losses_[pass.number()] = out->loss;
    if (dies(stage, peer)) return; // with the gradient
    REQUIRE(pass.answered(what, peer, payload(std::move(out->gradient_in))));
    if (dies(stage, peer)) return; // before the gradient counts
    REQUIRE(book.count({1, pass.number()}, what.hop) == gradient_book::answer::counted);
    if (dies(stage, peer)) return; // before the trainer knows
    REQUIRE(pass.counted(what.hop, peer));
    dies(stage, peer); // after
  }

  std::shared_ptr<const learn::decoder> model_;
  std::vector<float> parameters_;
  std::uint64_t death_ = 0, events_ = 0;
  bool died_ = false;
  std::shared_ptr<const stage_model> cut_;
  std::vector<stage_wiring> wiring_;
  std::map<std::uint32_t, std::map<peer_id, gradient_book>> books_;
  std::deque<micro_batch> passes_;
  std::map<std::uint64_t, double> losses_;
};

const std::vector<std::uint64_t> uneven{3, 1, 2, 4, 1};
constexpr std::uint64_t in_all = 11;

} // namespace

TEST_CASE("the gradient of a pipeline is the gradient of the whole model") {
  const auto samples = samples_of(in_all);
  for (const std::uint32_t stages : {1U, 2U, 4U, 5U}) {
    CAPTURE(stages);
    lab with(stages, 2, 0);
    with.run(samples, uneven);
    const auto expected = whole(with.model(), with.parameters(), samples, in_all);
    CHECK(distance(with.gradient(), expected.gradient) < 1e-6);
    CHECK(with.loss() == doctest::Approx(expected.loss).epsilon(1e-6));
    for (std::uint32_t s = 0; s < stages; ++s)
      CHECK(with.samples_in(s) == in_all * with.hops_of(s));
  }
}

TEST_CASE("a death at any point of the protocol loses no sample and repeats none") {
  const auto samples = samples_of(in_all);
  for (const std::uint32_t stages : {2U, 4U, 5U}) {
    CAPTURE(stages);
    lab untroubled(stages, 2, 0);
    untroubled.run(samples, uneven);
    const auto expected = whole(untroubled.model(), untroubled.parameters(), samples, in_all);
    std::uint64_t deaths = 0;
    for (std::uint64_t death = 1; death <= untroubled.events(); ++death) {
      CAPTURE(death);
      lab with(stages, 2, death);
      with.run(samples, uneven);
      deaths += with.died() ? 1 : 0;
      CHECK(distance(with.gradient(), expected.gradient) < 1e-6);
      for (std::uint32_t s = 0; s < stages; ++s)
        CHECK(with.samples_in(s) == in_all * with.hops_of(s));
    }
    CHECK(deaths == untroubled.events());
  }
}

TEST_CASE("a stage has its tensors once and all stages have all tensors") {
  const auto model = five_layers();
  for (const std::uint32_t stages : {1U, 2U, 4U, 5U}) {
    const auto cut = stage_model::make(model, even_cut(5, stages), read_batch).value();
    std::size_t sum = 0;
    for (std::uint32_t s = 0; s < stages; ++s) sum += kernels::end_of(cut->tensors_of(s));
    CHECK(sum == kernels::end_of(model->layout()));
  }
}

TEST_CASE("a cut with a gap or with other layers than the model is refused") {
  const auto model = five_layers();
  CHECK(!stage_model::make(model, {{0, 2}, {3, 5}}, read_batch));
  CHECK(!stage_model::make(model, {{0, 2}, {2, 4}}, read_batch));
  CHECK(!stage_model::make(model, {{0, 2}, {2, 6}}, read_batch));
  CHECK(!stage_model::make(model, {{0, 2}, {2, 2}, {2, 5}}, read_batch));
  CHECK(!stage_model::make(model, {{0, 0}}, read_batch));
  CHECK(!stage_model::make(model, {}, read_batch));
  CHECK(stage_model::make(model, {{0, 2}, {2, 5}}, read_batch));
  CHECK(even_cut(5, 2) == std::vector<learn::layer_range>{{0, 3}, {3, 5}});
}
