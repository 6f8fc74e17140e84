#include "actors/device/device.hpp"

#include <algorithm>

namespace shoal::actors {

device::device(caf::actor_config& config, host& on, device_profile profile)
    : protocol_actor(config, on), profile_(profile), jitter_(on.random_stream("device.jitter")) {}

caf::behavior device::make_behavior() {
  return {
      [this](compute_job& job) {
        const auto which = queue_of(job);
        jobs_[which].push_back(std::move(job));
        if (jobs_[which].size() == 1) start_next(which);
      },
      [this](work_done& message) {
        const auto which = message.token == on_host ? on_host : on_device;
        auto& jobs = jobs_[which];
        if (jobs.empty()) return;
        auto job = std::move(jobs.front());
        jobs.pop_front();
        send(job.reply_to, work_done{job.token});
        if (!jobs.empty()) start_next(which);
      },
  };
}

void device::on_exit() {
  jobs_ = {};
  protocol_actor::on_exit();
}

void device::start_next(queue which) {
  const auto& job = jobs_[which].front();
  auto seconds = static_cast<double>(job.samples) / profile_.samples_per_second;
  const bool step = job.samples == 0 || job.step;
  if (step && !job.untimed) seconds += to_seconds(profile_.step_time);
  if (profile_.jitter > 0) seconds *= std::max(0.1, jitter_.normal(1, profile_.jitter));
  here().run(job.samples == 0 ? "optimizer step" : "gradient", *job.work, from_seconds(seconds),
             caf::actor_cast<caf::actor>(this), which);
}

} // namespace shoal::actors
