#include "actors/training/auditor.hpp"

#include "actors/data/sample_ranges.hpp"
#include "kernels/base/check.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace shoal::actors {

bool auditor::open_task::complete() const {
  return std::all_of(blocks.begin(), blocks.end(),
                     [](const block& each) { return each.missing == 0; });
}

bool auditor::add(std::shared_ptr<const recomputation> what, caf::actor reply_to, state_ptr at,
                  duration now) {
  const auto count = index_count(what->blocks);
  if (open_.size() >= most_tasks || !at || count == 0 || count > most_samples ||
      count != what->weight || !checked_ranges(what->blocks, most_samples).ok())
    return false;
  open_task added;
  for (const auto& range : what->blocks)
    added.blocks.push_back(
        {range, std::vector<std::byte>(how_.size_only ? 0 : range.count * how_.sample_bytes),
         std::vector<bool>(range.count), range.count});
  added.of = {std::move(what), std::move(reply_to), std::move(at), now, {}};
  open_.push_back(std::move(added));
  return true;
}

std::vector<sample_range> auditor::wanted(duration now) {
  std::vector<sample_range> all, out;
  for (auto& one : open_) {
    if (one.complete() || (one.asked != duration::min() && now - one.asked < how_.ask_again))
      continue;
    one.asked = now;
    for (const auto& each : one.blocks)
      if (each.missing > 0) all.push_back(each.range);
  }
  // Two members may claim the same samples. A shard refuses ranges that overlap.
  std::sort(all.begin(), all.end());
  for (const auto& range : all) {
    const auto from = out.empty() ? range.first : std::max(range.first, out.back().end());
    if (from < range.end()) append_range(out, from, range.end());
  }
  return out;
}

bool auditor::came(const sample_range& range, const payload& data) {
  if (range.count == 0 || range.end() < range.first ||
      data.size() != range.count * how_.sample_bytes || data.is_size_only() != how_.size_only)
    return false;
  bool completed = false;
  for (auto& one : open_) {
    if (one.complete()) continue;
    for (auto& each : one.blocks) {
      const auto begin = std::max(range.first, each.range.first),
                 end = std::min(range.end(), each.range.end());
      for (auto i = begin; i < end; ++i) {
        const auto at = static_cast<std::size_t>(i - each.range.first);
        if (each.has[at]) continue;
        each.has[at] = true;
        --each.missing;
        if (!how_.size_only)
          std::memcpy(each.bytes.data() + at * how_.sample_bytes,
                      data.bytes().data() + (i - range.first) * how_.sample_bytes,
                      how_.sample_bytes);
      }
    }
    completed = completed || one.complete();
  }
  return completed;
}

std::optional<auditor::task> auditor::next() {
  const auto found =
      std::find_if(open_.begin(), open_.end(), [](const open_task& one) { return one.complete(); });
  if (found == open_.end()) return std::nullopt;
  auto out = std::move(found->of);
  for (auto& each : found->blocks)
    out.blocks.push_back({each.range, how_.size_only
                                          ? payload::size_only(each.range.count * how_.sample_bytes)
                                          : payload{std::move(each.bytes)}});
  open_.erase(found);
  return out;
}

std::vector<auditor::task> auditor::expired(duration now) {
  std::vector<task> out;
  std::erase_if(open_, [&](open_task& one) {
    const bool samples_lack = !one.complete() && now - one.of.since >= how_.give_up;
    if (!samples_lack && !is_late(one.of, now)) return false;
    out.push_back(std::move(one.of));
    return true;
  });
  return out;
}

void recomputing::compute_next(const workload& work) {
  SHOAL_CHECK(!done(), "a block is left");
  const auto& block = what_.blocks[next_++];
  if (!work.is_size_only()) {
    sum_.resize(work.value_count());
    work.accumulate(*what_.at, block.data.bytes(), block.range.count, sum_);
  }
  if (done())
    mean_ = work.is_size_only() ? payload::size_only(4 * work.value_count())
                                : mean_gradient(sum_, what_.what->weight);
}

} // namespace shoal::actors
