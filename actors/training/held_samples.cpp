#include "actors/training/held_samples.hpp"

#include "actors/data/sample_ranges.hpp"
#include "kernels/base/interval_map.hpp"

namespace shoal::actors {

namespace {

void append_ranges(std::vector<sample_range>& to, const std::vector<sample_range>& ranges) {
  for (const auto& range : ranges) append_range(to, range);
}

/// Takes those of `ranges` out of `list`.
std::vector<sample_range> take_out(std::vector<sample_range>& list,
                                   const std::vector<sample_range>& ranges) {
  interval_set gone;
  for (const auto& range : ranges) gone.insert(range.first, range.end());
  std::vector<sample_range> taken;
  for (const auto& range : std::exchange(list, {})) {
    for (const auto& piece : gone.pieces(range.first, range.end()))
      append_range(taken, piece.first, piece.end);
    for (const auto& piece : gone.missing(range.first, range.end()))
      append_range(list, piece.first, piece.end);
  }
  return taken;
}

} // namespace

std::vector<sample_range> sample_job::ranges() const {
  std::vector<sample_range> out;
  for (const auto& block : blocks) append_range(out, block.range);
  return out;
}

std::uint64_t held_samples::ready() const {
  std::uint64_t out = 0;
  for (const auto& block : ready_) out += block.range.count;
  return out;
}

void held_samples::add_ready(const sample_range& range, const payload& data,
                             std::uint64_t sample_bytes) {
  regain(range);
  const auto held = all();
  const auto is_held = [&](std::uint64_t index) {
    return std::any_of(held.begin(), held.end(), [index](const sample_range& r) {
      return r.first <= index && index < r.end();
    });
  };
  for (std::uint64_t at = range.first; at < range.end();) {
    auto end = at;
    while (end < range.end() && !is_held(end)) ++end;
    if (end > at)
      ready_.push_back({{at, static_cast<std::uint32_t>(end - at)},
                        data.slice((at - range.first) * sample_bytes, (end - at) * sample_bytes)});
    at = end + (end < range.end() ? 1 : 0);
  }
}

void held_samples::drop_ready(const std::vector<sample_range>& ranges) {
  std::erase_if(ready_, [&](const sample_job::block& block) {
    return std::any_of(ranges.begin(), ranges.end(), [&](const sample_range& lost) {
      return block.range.first < lost.end() && lost.first < block.range.end();
    });
  });
}

std::vector<sample_range> held_samples::take_ready() {
  std::vector<sample_range> out;
  for (const auto& block : std::exchange(ready_, {})) append_range(out, block.range);
  return out;
}

sample_job held_samples::take(std::uint64_t most, std::uint64_t sample_bytes, duration now) {
  sample_job job;
  while (!ready_.empty() && job.samples < most) {
    auto& front = ready_.front();
    const auto take =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(front.range.count, most - job.samples));
    job.blocks.push_back({{front.range.first, take}, front.data.slice(0, take * sample_bytes)});
    job.samples += take;
    if (take == front.range.count) {
      ready_.pop_front();
    } else {
      front.data = front.data.slice(take * sample_bytes, (front.range.count - take) * sample_bytes);
      front.range = {front.range.first + take, front.range.count - take};
    }
  }
  job.started = now;
  return job;
}

void held_samples::add_computed(const std::vector<sample_range>& ranges, std::uint64_t count) {
  counted_ += count;
  for (const auto& range : ranges) append_range(computed_, range);
}

void held_samples::retry_round() {
  auto kept = std::exchange(in_round_, {});
  append_ranges(kept, computed_);
  computed_ = std::move(kept);
  append_ranges(lost_computed_, std::exchange(lost_in_round_, {}));
}

void held_samples::end_round() {
  in_round_.clear();
  lost_in_round_.clear();
  lost_computed_.clear();
}

std::vector<sample_range> held_samples::give_up() {
  auto out = std::exchange(computed_, {});
  append_ranges(out, std::exchange(in_round_, {}));
  lost_computed_.clear();
  lost_in_round_.clear();
  counted_ = 0;
  if (running_) running_->discard = true;
  return out;
}

std::vector<sample_range> held_samples::drop_computed(const std::vector<sample_range>& ranges) {
  auto dropped = take_out(computed_, ranges);
  append_ranges(dropped, take_out(in_round_, ranges));
  return dropped;
}

std::vector<sample_range> held_samples::lose_computed(const std::vector<sample_range>& ranges) {
  auto lost = take_out(computed_, ranges);
  append_ranges(lost_computed_, lost);
  const auto of_round = take_out(in_round_, ranges);
  append_ranges(lost_in_round_, of_round);
  append_ranges(lost, of_round);
  return lost;
}

void held_samples::regain(const sample_range& range) {
  append_ranges(computed_, take_out(lost_computed_, {range}));
  append_ranges(in_round_, take_out(lost_in_round_, {range}));
}

std::vector<sample_range> held_samples::all() const {
  std::vector<sample_range> out;
  for (const auto& range : in_round_) append_range(out, range);
  for (const auto& range : computed_) append_range(out, range);
  if (running_)
    for (const auto& block : running_->blocks) append_range(out, block.range);
  for (const auto& block : ready_) append_range(out, block.range);
  return out;
}

} // namespace shoal::actors
