#include "actors/device/device.hpp"

#include <algorithm>

namespace shoal::actors {

device::device(caf::actor_config& config, host& on, device_profile profile)
    : protocol_actor(config, on), profile_(profile), jitter_(on.random_stream("device.jitter")) {}

caf::behavior device::make_behavior() {
  return {
      [this](compute_job& job) {
        jobs_.push_back(std::move(job));
        if (jobs_.size() == 1) start_next();
      },
      [this](work_done&) {
        if (jobs_.empty()) return;
        auto job = std::move(jobs_.front());
        jobs_.pop_front();
        send(job.reply_to, work_done{job.token});
        if (!jobs_.empty()) start_next();
      },
  };
}

void device::on_exit() {
  jobs_.clear();
  protocol_actor::on_exit();
}

void device::start_next() {
  const auto& job = jobs_.front();
  auto seconds = static_cast<double>(job.samples) / profile_.samples_per_second;
  if (job.samples == 0 || job.step) seconds += to_seconds(profile_.step_time);
  if (profile_.jitter > 0) seconds *= std::max(0.1, jitter_.normal(1, profile_.jitter));
  here().run(job.samples == 0 ? "optimizer step" : "gradient", *job.work, from_seconds(seconds), caf::actor_cast<caf::actor>(this), job.token);
}

}  // namespace shoal::actors
