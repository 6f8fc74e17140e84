// The course of one micro-batch through the hops of a pipeline (stage_model.hpp). It goes forward
// through all hops but the last, and backward from the last hop to the first. Each hop is a task
// for a peer that the trainer chooses anew. The answer of a backward task is counted at once: the
// trainer tells that one peer that the gradient counts, and waits for its word.
//
//   a hop: forward sent -> forward answered ... backward sent -> backward answered -> counted
//
// When a peer is lost, its open tasks are due again. So are those backward passes that have counted
// at it, because their gradients are lost with it. The trainer keeps the inputs and the gradients
// of all hops until the step. So no other hop is computed again, and each sample counts once in
// each stage. No actor and no clock.
#pragma once

#include "actors/ids.hpp"
#include "kernels/base/payload.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace shoal::actors {

class micro_batch {
public:
  enum class task_kind : std::uint8_t { forward, backward };
  struct task {
    task_kind kind = task_kind::forward;
    std::uint32_t hop = 0;
    bool operator==(const task&) const = default;
  };

  /// `samples`: the bytes of `count` samples. Requires: hops >= 2.
  micro_batch(std::uint64_t number, std::uint32_t hops, payload samples, std::uint64_t count);

  std::uint64_t number() const noexcept { return number_; }
  std::uint64_t count() const noexcept { return count_; }
  const payload& samples() const noexcept { return samples_; }
  /// The input of a hop, empty for hop 0; and the gradient with respect to its output, empty for
  /// the last hop.
  const payload& input(std::uint32_t hop) const { return at_[hop].input; }
  const payload& gradient(std::uint32_t hop) const { return at_[hop].gradient; }

  /// The tasks that nobody works on now.
  std::vector<task> due() const;
  void sent(task what, peer_id to);
  /// The peer that works on the task, or has ended it.
  peer_id peer_of(task what) const;
  /// This peer works on the task. False for any hop that the pipeline does not have.
  bool awaits(task what, peer_id by) const;

  /// The output of a forward task, or the gradient with respect to the input of a backward task,
  /// has come. False: the task was not open at this peer, and the answer is of no use.
  bool answered(task what, peer_id by, payload values);
  /// The peer says that the backward pass of this hop counts. False: nobody has asked it.
  bool counted(std::uint32_t hop, peer_id by);
  /// The peer has refused the task, or has not answered in time.
  void failed(task what, peer_id by);
  /// The peer is gone, and with it all that it has computed. Returns the number of counted hops
  /// that are due again.
  std::uint32_t lost(peer_id peer);

  /// The stage of this hop has made its step, so nothing more counts there.
  void settle(std::uint32_t hop);

  /// Every hop has counted.
  bool done() const { return counted_hops() == at_.size(); }
  std::uint32_t counted_hops() const;

private:
  bool open(task what) const;

  enum class progress : std::uint8_t { none, sent, answered, counted };
  struct hop_state {
    bool has_input = false, has_gradient = false;
    payload input, gradient;
    progress forward = progress::none, backward = progress::none;
    peer_id forward_by = 0, backward_by = 0;
  };
  std::uint32_t last() const { return static_cast<std::uint32_t>(at_.size()) - 1; }

  std::uint64_t number_ = 0, count_ = 0;
  payload samples_;
  std::vector<hop_state> at_;
};

} // namespace shoal::actors
