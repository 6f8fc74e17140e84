#include "actors/averaging/part_reduction.hpp"

#include "actors/conduct/conduct.hpp"
#include "kernels/base/check.hpp"
#include "kernels/squared_norm.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace shoal::actors {

namespace {

constexpr double most_norm = 1e18, most_square = most_norm * most_norm;

aggregation_setting setting_of(const averaging_config& how, const chunk_grid& grid,
                               const round_extent& of) {
  return {&how.aggregator->options, how.aggregation,
          of.values > 0 ? of.values : grid.part_bytes / 4, grid.piece / 4, of.group.high};
}

} // namespace

bool can_be_averaged(std::span<const float> values) {
  return kernels::squared_norm(values) <= most_square; // false for NaN
}

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
    if (range.first < next || range.first >= count || range.count == 0 ||
        range.count > count - range.first)
      return std::nullopt;
    next = range.first + range.count;
    for (auto k = range.first; k < next; ++k) out[k] = true;
  }
  return out;
}

part_reduction::part_reduction(chunk_grid grid, std::vector<std::uint64_t> weights, bool size_only,
                               const averaging_config& how, duration now, float_buffer into,
                               std::uint64_t first, const round_extent& of)
    : grid_(grid), weights_(std::move(weights)), size_only_(size_only), how_(how.aggregator),
      max_norm_ratio_(how.max_norm_ratio), conduct_(how.conduct),
      aggregator_(how_->make(setting_of(how, grid, of))), chunks_(grid.count()),
      values_(std::move(into)), first_(values_.empty() ? 0 : first), lacking_(weights_.size()),
      out_(weights_.size()), last_progress_(weights_.size(), now), wanted_(grid.count()) {
  for (std::size_t m = 0; m < weights_.size(); ++m)
    // A member of weight 0 only wants the result.
    out_[m] = weights_[m] == 0;
}

bool part_reduction::has(const open_chunk& chunk, std::uint32_t member) const {
  return std::any_of(chunk.data.begin(), chunk.data.end(),
                     [&](const auto& entry) { return entry.first == member; });
}

chunk_set part_reduction::open(const chunk_set& chunks, duration now) {
  if (!by_part()) return expect(chunks, now);
  for (std::uint32_t k = 0; k < chunks.size(); ++k) {
    if (!chunks[k] || wanted_[k]) continue;
    wanted_[k] = true;
    if (senders_) ready_.push_back(k);
  }
  return expect(chunk_set(grid_.count(), true), now);
}

/// Returns the chunks that were not expected before.
chunk_set part_reduction::expect(const chunk_set& chunks, duration now) {
  const auto senders = static_cast<std::uint32_t>(std::count(out_.begin(), out_.end(), false));
  chunk_set fresh(chunks.size());
  std::uint32_t opened = 0;
  for (std::uint32_t k = 0; k < chunks.size(); ++k) {
    if (!chunks[k] || chunks_[k].open) continue;
    chunks_[k].open = fresh[k] = true;
    chunks_[k].waiting = senders;
    ++opened;
  }
  incomplete_ += opened;
  for (std::uint32_t k = 0; senders == 0 && k < fresh.size(); ++k)
    if (fresh[k]) complete(k);
  for (std::size_t m = 0; m < out_.size(); ++m)
    if (!out_[m]) {
      if (lacking_[m] == 0) last_progress_[m] = now;
      lacking_[m] += opened;
    }
  return fresh;
}

/// All pieces of the chunk that will arrive are here.
void part_reduction::complete(std::uint32_t number) {
  --incomplete_;
  if (!by_part()) return ready_.push_back(number);
  for (std::uint32_t k = 0; incomplete_ == 0 && k < wanted_.size(); ++k)
    if (wanted_[k]) ready_.push_back(k);
}

part_reduction::taken part_reduction::add(std::uint32_t member, std::uint32_t number, payload data,
                                          duration now) {
  if (data.is_size_only() != size_only_ || weights_[member] == 0) return taken::wrong;
  auto& chunk = chunks_[number];
  if (out_[member]) return taken::too_late;
  // A chunk with `waiting` 0 has been delivered by every sender that is not left out.
  if (!chunk.open || chunk.waiting == 0 || has(chunk, member)) return taken::wrong;
  chunk.data.emplace_back(member, std::move(data));
  last_progress_[member] = now;
  --lacking_[member];
  if (--chunk.waiting == 0) complete(number);
  return taken::yes;
}

void part_reduction::leave_out(std::uint32_t member) {
  if (out_[member]) return;
  out_[member] = true;
  if (lacking_[member] == 0) return;
  const auto of_member = [&](const auto& piece) { return piece.first == member; };
  for (std::uint32_t k = 0; k < chunks_.size(); ++k) {
    auto& chunk = chunks_[k];
    if (by_part() && std::erase_if(chunk.data, of_member) > 0) continue;
    if (!chunk.open || chunk.waiting == 0 || has(chunk, member)) continue;
    if (--chunk.waiting == 0) complete(k);
  }
}

std::vector<std::uint32_t> part_reduction::silent(duration now, duration timeout) const {
  std::vector<std::uint32_t> out;
  for (std::uint32_t m = 0; m < out_.size(); ++m)
    if (waits_for(m) && now - last_progress_[m] >= timeout) out.push_back(m);
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

/// The pieces of a complete chunk, in member order.
part_reduction::pieces& part_reduction::in_order(std::uint32_t chunk) {
  auto& data = chunks_[chunk].data;
  std::sort(data.begin(), data.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  return data;
}

/// The memory for the result of these bytes of the part.
std::span<float> part_reduction::room(std::uint64_t offset, std::uint64_t bytes) {
  if (values_.empty()) values_ = float_buffer(grid_.part_bytes / 4);
  return values_.floats().subspan(first_ + offset / 4, bytes / 4);
}

void part_reduction::leave_out(const refusals& refused) {
  for (const auto member : refused.faulty) leave_out(member);
  for (const auto member : refused.outliers) leave_out(member);
}

void part_reduction::refuse_huge(std::vector<contribution>& from, refusals& refused) {
  if (max_norm_ratio_ <= 0) return;
  std::vector<double> squares;
  for (const auto& one : from) squares.push_back(kernels::squared_norm(one.values));
  auto most = most_square;
  if (from.size() >= 3) {
    auto sorted = squares;
    // A square that is no number comes last.
    std::sort(sorted.begin(), sorted.end(),
              [](double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); });
    const auto values = static_cast<double>(from.front().values.size());
    const auto median = sorted[sorted.size() / 2];
    usual_square_ = std::max(usual_square_, median / values);
    if (median > 0)
      most = std::min(most, max_norm_ratio_ * max_norm_ratio_ * usual_square_ * values);
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (squares[i] <= most)
      from[kept++] = from[i];
    else
      (squares[i] <= most_square ? refused.outliers : refused.faulty).push_back(from[i].member);
  }
  from.resize(kept);
}

/// Writes the aggregate and returns the members in it; none if no values can be had. Adds senders
/// of values that cannot be aggregated to `refused`.
std::vector<std::uint32_t> part_reduction::aggregate(std::vector<contribution> from,
                                                     std::span<float> out, refusals& refused) {
  aggregator_->open(out.size(), weights_);
  for (const auto& [member, values] : from)
    aggregator_->add(member, conduct_->weight_of(member, static_cast<double>(weights_[member])),
                     values);
  while (!from.empty()) {
    const auto bad = aggregator_->close(out);
    if (!bad) break;
    const auto found = std::find_if(from.begin(), from.end(),
                                    [&](const contribution& one) { return one.member == *bad; });
    SHOAL_CHECK(found != from.end(), "an aggregator refuses only members that were added");
    from.erase(found);
    aggregator_->leave_out(*bad);
    refused.faulty.push_back(*bad);
  }
  reduced_unit unit{out, 0, std::accumulate(weights_.begin(), weights_.end(), std::uint64_t{0}),
                    from.size()};
  std::vector<std::uint32_t> senders;
  senders.reserve(from.size());
  for (const auto& one : from) {
    senders.push_back(one.member);
    unit.weight += static_cast<double>(weights_[one.member]);
  }
  if (!senders.empty()) conduct_->reduced(unit);
  return senders;
}

std::optional<part_reduction::reduced> part_reduction::next() {
  if (by_part()) return next_of_part();
  while (!ready_.empty() || (incomplete_ == 0 && !doubtful_.empty())) {
    auto& queue = ready_.empty() ? doubtful_ : ready_;
    const auto chunk = queue.front();
    queue.pop_front();
    const bool more = incomplete_ > 0 || !ready_.empty();
    auto out = reduce_chunk(chunk, more);
    if (!out) {
      doubtful_.push_back(chunk);
      continue;
    }
    leave_out(out->refused);
    return out;
  }
  return std::nullopt;
}

/// Nothing if some values are doubtful and `more` units of the part are to come. Those may show
/// that values of this size are usual.
std::optional<part_reduction::reduced> part_reduction::reduce_chunk(std::uint32_t number,
                                                                    bool more) {
  reduced out;
  out.chunk = number;
  auto& arrived = in_order(number);
  if (size_only_) {
    const auto data = std::exchange(arrived, {});
    for (const auto& [member, piece] : data) out.senders.push_back(member);
    if (!data.empty()) out.values = payload::size_only(grid_.size(number));
    return out;
  }
  std::vector<contribution> from;
  from.reserve(arrived.size());
  for (const auto& [member, piece] : arrived) from.push_back({member, piece.floats()});
  refuse_huge(from, out.refused);
  if (more && !out.refused.outliers.empty() && out.refused.faulty.empty()) return std::nullopt;
  const auto data = std::exchange(arrived, {}); // `from` has views of it
  out.senders =
      aggregate(std::move(from), room(grid_.offset(number), grid_.size(number)), out.refused);
  if (!out.senders.empty())
    out.values = values_.slice(4 * first_ + grid_.offset(number), grid_.size(number));
  return out;
}

std::optional<part_reduction::reduced> part_reduction::next_of_part() {
  if (ready_.empty()) return std::nullopt;
  if (!senders_) reduce_part();
  reduced out;
  out.chunk = ready_.front();
  ready_.pop_front();
  out.senders = *senders_;
  out.refused = std::exchange(refused_, {});
  if (out.senders.empty()) return out;
  out.values = size_only_
                   ? payload::size_only(grid_.size(out.chunk))
                   : values_.slice(4 * first_ + grid_.offset(out.chunk), grid_.size(out.chunk));
  return out;
}

/// All pieces of the part that will arrive are here. Puts each sender's pieces together and
/// aggregates them as one unit.
void part_reduction::reduce_part() {
  std::vector<pieces> chunks;
  for (std::uint32_t k = 0; k < chunks_.size(); ++k)
    chunks.push_back(std::exchange(in_order(k), {}));
  std::vector<float_buffer> whole;
  std::vector<contribution> from;
  senders_.emplace();
  for (std::size_t i = 0; i < chunks.front().size(); ++i) {
    const auto member = chunks.front()[i].first;
    senders_->push_back(member);
    if (size_only_) continue;
    const auto values = whole.emplace_back(float_buffer(grid_.part_bytes / 4)).floats();
    for (std::uint32_t k = 0; k < chunks.size(); ++k) {
      SHOAL_CHECK(i < chunks[k].size() && chunks[k][i].first == member,
                  "a sender has delivered all chunks or none");
      const auto piece = std::exchange(chunks[k][i].second, {});
      std::copy(piece.floats().begin(), piece.floats().end(),
                values.begin() + static_cast<std::ptrdiff_t>(grid_.offset(k) / 4));
    }
    from.push_back({member, values});
  }
  if (size_only_) return;
  refuse_huge(from, refused_);
  senders_ = aggregate(std::move(from), room(0, grid_.part_bytes), refused_);
  leave_out(refused_);
}

} // namespace shoal::actors
