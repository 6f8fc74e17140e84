// The samples of a pipeline's trainer: it streams them from the data shard, and commits those whose
// gradients have counted.
#include "actors/data/observations.hpp"
#include "actors/data/sample_ranges.hpp"
#include "actors/pipeline/pipeline_trainer.hpp"
#include "actors/training/observations.hpp"

#include <utility>

namespace shoal::actors {

namespace {

payload bytes_of(const sample_job& job) {
  if (job.blocks.size() == 1) return job.blocks.front().data;
  std::uint64_t bytes = 0;
  for (const auto& block : job.blocks) bytes += block.data.size();
  if (job.blocks.front().data.is_size_only()) return payload::size_only(bytes);
  std::vector<std::byte> out;
  out.reserve(bytes);
  for (const auto& block : job.blocks) {
    const auto part = block.data.bytes();
    out.insert(out.end(), part.begin(), part.end());
  }
  return payload{std::move(out)};
}

} // namespace

std::optional<pipeline_trainer::taken> pipeline_trainer::take(std::uint64_t count) {
  if (!stream_) return taken{options_.samples(part_.next(), count), {}};
  auto& held = stream_->held;
  std::optional<taken> out;
  if (held.ready() >= count) {
    const auto job = held.take(count, options_.shard.sample_bytes, now());
    out.emplace();
    out->bytes = bytes_of(job);
    out->ranges = job.ranges();
    held.add_computed(out->ranges, 0);
  }
  stream_->shard.request(now());
  return out;
}

/// The gradient of a micro-batch has counted in every stage for the first time.
void pipeline_trainer::trained(const micro_batch& pass) {
  auto ranges = part_.trained(pass.number());
  if (!ranges.empty())
    here().observe(actors::trained{epoch_, std::move(ranges), part_.loss(pass.number())});
}

template <class Samples>
void pipeline_trainer::receive_samples(const Samples& m) {
  if (!stream_) return sender_misbehaves("samples from a shard that was not asked");
  if (draining_) return; // the leases of these samples end
  const auto came = stream_->shard.take(m, current_sender(), now());
  if (!came) return sender_misbehaves(came.error());
  if (*came) pump();
}
template void pipeline_trainer::receive_samples(const samples& m);
template void pipeline_trainer::receive_samples(const proven_samples& m);
template void pipeline_trainer::receive_samples(const proven_copies& m);

void pipeline_trainer::receive(const lease_lost& m) {
  if (!stream_ || !stream_->shard.is_current(current_sender())) return;
  stream_->shard.lost(m.ranges);
  auto repeated = stream_->held.drop_computed(m.ranges);
  if (repeated.empty()) return;
  // The shard leases these samples again. Their gradients stay in the stages' sums, but the trainer
  // neither reports nor commits them.
  part_.drop(repeated);
  here().observe(samples_reported{"repeated: in a batch of a trainer that lost their lease",
                                  here().id(), epoch_, std::move(repeated)});
}

/// Commits the samples of the batch. The shard leases those again that have counted nowhere.
void pipeline_trainer::hand_in(const group_id& step) {
  if (!stream_) return;
  commit out;
  out.epoch = epoch_;
  out.group = step;
  out.parts_total = options_.model->hops();
  for (auto& [hops, of] : part_.by_hops(passes_)) {
    if (of.samples.empty()) continue; // the leases of all are lost
    stream_->held.drop_computed(of.samples);
    if (hops == 0) {
      stream_->shard.give_back(std::move(of.samples));
      continue;
    }
    here().observe(batch_stepped{epoch_, step, of.samples, hops, out.parts_total,
                                 of.loss_sum / static_cast<double>(of.count)});
    out.entries.push_back({here().id(), std::move(of.samples), hops});
  }
  if (out.entries.empty()) return;
  stream_->shard.hand_in(std::move(out));
}

} // namespace shoal::actors
