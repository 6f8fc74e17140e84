// The tasks that a trainer of a pipeline has sent and that are not answered. It tells when a peer
// is silent, and keeps the course of each micro-batch, so that the slowest one can be explained. No
// actor; times are the caller's.
#pragma once

#include "actors/averaging/answer_times.hpp"
#include "actors/ids.hpp"
#include "actors/pipeline/micro_batch.hpp"
#include "actors/pipeline/observations.hpp"
#include "actors/pipeline/stage_model.hpp"
#include "kernels/base/units.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace shoal::actors {

class sent_tasks {
public:
  struct one {
    std::uint64_t number = 0; ///< the micro-batch's
    micro_batch::task task;
    peer_id peer = 0;
    duration sent{}, until{};
  };

  /// A peer that has not answered in this time, and in five times the mean of all answers of the
  /// stage, is silent. With large micro-batches or long queues, all answers are late.
  sent_tasks(std::shared_ptr<const stage_model> model, duration forward_timeout,
             duration backward_timeout);

  struct timer {
    duration wait{};
    std::uint64_t token = 0;
  };
  /// The task is on its way. Returns when silent() is to be asked.
  timer send(std::uint64_t number, micro_batch::task what, peer_id to, duration now);
  /// The task of this token, if its time is over. It stays until drop(). A later try of the task
  /// has the same token and a later end.
  std::optional<one> silent(std::uint64_t token, duration now);
  void answered(std::uint64_t number, micro_batch::task what, peer_id by, duration computed,
                duration now);
  /// The task ends without an answer, if it was sent to this peer.
  void drop(std::uint64_t number, micro_batch::task what, peer_id peer);
  /// The tasks of this peer, which end without an answer.
  std::vector<one> drop_all_of(peer_id peer);
  /// Nothing of the batch is of interest any more but the times of its answers.
  void clear();

  duration timeout_of(micro_batch::task what) const;

  /// Every hop of the micro-batch has counted.
  void done(const micro_batch& which, std::uint64_t epoch, duration now);
  /// The slowest one that is done since the last call; none if no micro-batch is.
  std::optional<slowest_micro_batch> take_slowest();

private:
  using stage_times = answer_times<std::uint32_t, mean_deadline>;
  /// The course of a micro-batch that is not done.
  struct course {
    duration begun{};
    std::vector<pass_task> tasks;
    std::map<std::uint64_t, std::uint32_t> tries; // by the token of the task
  };
  std::uint64_t token_of(std::uint64_t number, micro_batch::task what) const;
  void took(const one& of, duration now);

  std::shared_ptr<const stage_model> model_;
  std::map<std::uint64_t, one> sent_;       // by token
  std::map<std::uint64_t, course> courses_; // by micro-batch
  slowest_micro_batch slowest_;
  std::array<stage_times, 2> times_; // forward and backward, by stage
};

} // namespace shoal::actors
