#include "actors/averaging/part_reduction.hpp"

#include <algorithm>
#include <numeric>

#include "kernels/base/check.hpp"
#include "kernels/reduce_weighted_mean.hpp"

namespace shoal::actors {

std::vector<chunk_range> to_ranges(const chunk_set& chunks) {
  std::vector<chunk_range> out;
  for (std::uint32_t k = 0; k < chunks.size(); ++k) {
    if (!chunks[k]) continue;
    if (!out.empty() && out.back().first + out.back().count == k)
      ++out.back().count;
    else
      out.push_back({k, 1});
  }
  return out;
}

std::optional<chunk_set> from_ranges(const std::vector<chunk_range>& ranges, std::uint32_t count) {
  chunk_set out(count);
  std::uint32_t next = 0;
  for (const auto& range : ranges) {
    if (range.first < next || range.first >= count || range.count == 0 || range.count > count - range.first)
      return std::nullopt;
    next = range.first + range.count;
    for (auto k = range.first; k < next; ++k) out[k] = true;
  }
  return out;
}

part_reduction::part_reduction(chunk_grid grid, std::vector<std::uint64_t> weights, bool hollow, mutant bug,
                               duration now, float_buffer into, std::uint64_t first)
    : grid_(grid), weights_(std::move(weights)), hollow_(hollow), bug_(bug), chunks_(grid.count()),
      values_(std::move(into)), first_(values_.empty() ? 0 : first), lacking_(weights_.size()), out_(weights_.size()), last_progress_(weights_.size(), now) {
  for (std::size_t m = 0; m < weights_.size(); ++m) out_[m] = weights_[m] == 0;  // it only wants the result
}

bool part_reduction::has(const open_chunk& chunk, std::uint32_t member) const {
  return std::any_of(chunk.data.begin(), chunk.data.end(), [&](const auto& entry) { return entry.first == member; });
}

void part_reduction::open(const chunk_set& chunks, duration now) {
  const auto senders = static_cast<std::uint32_t>(std::count(out_.begin(), out_.end(), false));
  std::uint32_t opened = 0;
  for (std::uint32_t k = 0; k < chunks.size(); ++k) {
    if (!chunks[k] || chunks_[k].open) continue;
    chunks_[k].open = true;
    chunks_[k].waiting = senders;
    ++opened;
    if (senders == 0) ready_.push_back(k);
  }
  for (std::size_t m = 0; m < out_.size(); ++m)
    if (!out_[m]) {
      if (lacking_[m] == 0) last_progress_[m] = now;
      lacking_[m] += opened;
    }
}

part_reduction::taken part_reduction::add(std::uint32_t member, std::uint32_t number, payload data, duration now) {
  if (data.is_hollow() != hollow_ || weights_[member] == 0) return taken::wrong;
  auto& chunk = chunks_[number];
  if (out_[member]) return taken::too_late;
  // Once it is reduced every sender that is not left out has delivered it.
  if (!chunk.open || chunk.waiting == 0 || has(chunk, member)) return taken::wrong;
  chunk.data.emplace_back(member, std::move(data));
  last_progress_[member] = now;
  --lacking_[member];
  if (--chunk.waiting == 0) ready_.push_back(number);
  return taken::yes;
}

void part_reduction::leave_out(std::uint32_t member) {
  if (out_[member]) return;
  out_[member] = true;
  if (lacking_[member] == 0) return;
  for (std::uint32_t k = 0; k < chunks_.size(); ++k) {
    auto& chunk = chunks_[k];
    if (!chunk.open || chunk.waiting == 0 || has(chunk, member)) continue;
    if (--chunk.waiting == 0) ready_.push_back(k);
  }
}

std::vector<std::uint32_t> part_reduction::silent(duration now, duration patience) const {
  std::vector<std::uint32_t> out;
  for (std::uint32_t m = 0; m < out_.size(); ++m)
    if (waits_for(m) && now - last_progress_[m] >= patience) out.push_back(m);
  return out;
}

std::vector<std::uint32_t> part_reduction::behind() const {
  std::uint64_t here = 0, all = 0;
  std::vector<std::uint32_t> out;
  for (std::uint32_t m = 0; m < out_.size(); ++m) {
    all += weights_[m];
    if (waits_for(m))
      out.push_back(m);
    else if (!out_[m])
      here += weights_[m];
  }
  if (here <= all / 2) out.clear();
  return out;
}

std::optional<part_reduction::reduced> part_reduction::next() {
  if (ready_.empty()) return std::nullopt;
  reduced out;
  out.chunk = ready_.front();
  ready_.pop_front();
  auto data = std::move(chunks_[out.chunk].data);
  chunks_[out.chunk].data = {};
  std::sort(data.begin(), data.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  if (hollow_) {
    for (const auto& [member, piece] : data) out.senders.push_back(member);
    if (!data.empty()) out.values = payload::hollow(grid_.size(out.chunk));
    return out;
  }
  while (!data.empty()) {
    std::vector<kernels::weighted_values> inputs;
    double total = 0;
    for (const auto& [member, piece] : data) {
      auto weight = bug_ == mutant::equal_weights ? 1.0 : static_cast<double>(weights_[member]);
      inputs.push_back({weight, piece.floats()});
      total += weight;
    }
    if (values_.empty()) values_ = float_buffer(grid_.part_bytes / 4);
    const auto values = values_.floats().subspan(first_ + grid_.offset(out.chunk) / 4, grid_.size(out.chunk) / 4);
    auto bad = kernels::weighted_mean(inputs, values);
    if (bad < data.size()) {
      out.refused.push_back(data[bad].first);
      data.erase(data.begin() + static_cast<std::ptrdiff_t>(bad));
      continue;
    }
    auto factor = 1.0;
    if (bug_ == mutant::wrong_denominator)
      factor = total / static_cast<double>(std::accumulate(weights_.begin(), weights_.end(), std::uint64_t{0}));
    if (bug_ == mutant::divide_by_peers) factor = total / static_cast<double>(data.size());
    if (factor != 1.0)
      for (auto& x : values) x = static_cast<float>(x * factor);
    for (const auto& [member, piece] : data) out.senders.push_back(member);
    out.values = values_.slice(4 * first_ + grid_.offset(out.chunk), grid_.size(out.chunk));
    break;
  }
  for (auto member : out.refused) leave_out(member);
  return out;
}

}  // namespace shoal::actors
