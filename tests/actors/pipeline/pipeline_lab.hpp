// A pipeline without a network, for any model that is cut into stages. The tests compare its
// gradient with that of the whole model.
#pragma once

#include "actors/pipeline/gradient_book.hpp"
#include "actors/pipeline/micro_batch.hpp"
#include "actors/pipeline/stage_model.hpp"
#include "actors/pipeline/stage_wiring.hpp"

#include <doctest/doctest.h>

#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace shoal::actors::testing {

/// A pipeline without a network: a trainer and `peers` peers for each stage. At the `death`-th
/// event a peer dies: the one that the event is about.
class pipeline_lab {
public:
  /// `parameters`: those of the whole model, whose layout is `layout`. Deaths count from 1; 0:
  /// none.
  pipeline_lab(std::shared_ptr<const stage_model> cut, std::vector<kernels::tensor_slot> layout,
               std::vector<float> parameters, std::size_t sample_bytes, std::uint64_t peers,
               std::uint64_t death)
      : cut_(std::move(cut)), layout_(std::move(layout)), parameters_(std::move(parameters)),
        sample_bytes_(sample_bytes), death_(death), wiring_(cut_->stages()) {
    peer_id id = 100;
    for (std::uint32_t s = 0; s < cut_->stages(); ++s)
      for (std::uint64_t i = 0; i < peers; ++i) {
        wiring_[s].join(++id);
        books_[s][id];
      }
  }

  const stage_model& cut() const { return *cut_; }

  /// Computes micro-batches of these sizes, some at once.
  void run(const std::vector<std::byte>& samples, const std::vector<std::uint64_t>& sizes) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const auto bytes = sizes[i] * sample_bytes_;
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
      REQUIRE(learn::scatter_add(tensors, sum, layout_, out));
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
    const bool backward = what.kind == micro_batch::task_kind::backward;
    const auto peer = wiring_[stage].choose(backward ? 2.5 : 1).value();
    pass.sent(what, peer);
    if (dies(stage, peer)) return; // with the task
    const auto own = learn::gather(layout_, parameters_, cut_->tensors_of(stage)).value();
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

  std::shared_ptr<const stage_model> cut_;
  std::vector<kernels::tensor_slot> layout_;
  std::vector<float> parameters_;
  std::size_t sample_bytes_ = 0;
  std::uint64_t death_ = 0, events_ = 0;
  bool died_ = false;
  std::vector<stage_wiring> wiring_;
  std::map<std::uint32_t, std::map<peer_id, gradient_book>> books_;
  std::deque<micro_batch> passes_;
  std::map<std::uint64_t, double> losses_;
};

/// The sizes of the micro-batches, and their sum.
inline const std::vector<std::uint64_t> uneven{3, 1, 2, 4, 1};
inline constexpr std::uint64_t in_all = 11;

} // namespace shoal::actors::testing
