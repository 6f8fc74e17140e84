#include "actors/pipeline/batch_part.hpp"

#include "actors/data/sample_ranges.hpp"
#include "kernels/base/interval_map.hpp"

#include <utility>

namespace shoal::actors {

void batch_part::add(std::uint64_t number, std::uint64_t count, std::vector<sample_range> ranges) {
  next_ += count;
  ranges_[number] = std::move(ranges);
}

double batch_part::loss(std::uint64_t number) const {
  const auto found = losses_.find(number);
  return found == losses_.end() ? 0 : found->second;
}

double batch_part::loss_sum() const {
  double out = 0;
  for (const auto& [number, loss] : losses_) out += loss;
  return out;
}

std::vector<sample_range> batch_part::trained(std::uint64_t number) {
  if (!trained_.insert(number).second) return {};
  return ranges_.at(number);
}

void batch_part::drop(std::span<const sample_range> lost) {
  interval_set gone;
  for (const auto& range : lost) gone.insert(range.first, range.end());
  for (auto& [number, ranges] : ranges_)
    for (const auto& range : std::exchange(ranges, {}))
      for (const auto& piece : gone.missing(range.first, range.end()))
        append_range(ranges, piece.first, piece.end);
}

std::map<std::uint32_t, batch_part::share>
batch_part::by_hops(const std::map<std::uint64_t, micro_batch>& micro_batches) const {
  std::map<std::uint32_t, share> out;
  for (const auto& [number, one] : micro_batches) {
    auto& into = out[one.counted_hops()];
    for (const auto& range : ranges_.at(number)) append_range(into.samples, range);
    into.count += one.count();
    into.loss_sum += loss(number);
  }
  return out;
}

} // namespace shoal::actors
