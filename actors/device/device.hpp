// A compute device: runs jobs one after another and makes each last as long as its profile says.
// The host's compute threads do the work meanwhile. With an offloaded optimizer there are two
// queues. The optimizer's state is then in the host's memory, and the host's processor makes the
// steps while the device computes gradients.
#pragma once

#include "actors/protocol_actor.hpp"

#include <caf/allowed_unsafe_message_type.hpp>

#include <array>
#include <deque>
#include <functional>
#include <memory>

namespace shoal::actors {

struct device_profile {
  double samples_per_second = 10; ///< > 0
  double jitter = 0;    ///< standard deviation of a duration, as a fraction of the duration
  duration step_time{}; ///< time for one optimizer step
  bool offload =
      false; ///< the host's processor makes optimizer steps, concurrently with other jobs
};

/// Local message to a device: run `work`, which takes the time of `samples` samples. 0 samples is
/// an optimizer step; with `step`, one follows the samples. An `untimed` job takes no time, and
/// waits for no job of the device. The device answers work_done{token} to `reply_to`, a local
/// actor.
struct compute_job {
  std::shared_ptr<std::function<void()>> work;
  std::uint64_t samples = 0;
  std::uint64_t token = 0;
  caf::actor reply_to;
  bool step = false;
  bool untimed = false;
};

class device final : public protocol_actor {
public:
  device(caf::actor_config& config, host& on, device_profile profile);
  caf::behavior make_behavior() override;
  void on_exit() override;

private:
  enum queue : std::uint64_t { on_device, on_host };
  queue queue_of(const compute_job& job) const {
    return job.untimed || (profile_.offload && job.samples == 0) ? on_host : on_device;
  }
  void start_next(queue which);

  device_profile profile_;
  rng jitter_;
  std::array<std::deque<compute_job>, 2> jobs_; // the front of each queue is running
};

} // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::compute_job)
