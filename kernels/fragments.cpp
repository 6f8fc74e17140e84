#include "kernels/fragments.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace shoal::kernels {

namespace {

/// The name of the tensor's layer. A tensor outside of the layers is named by itself.
std::string_view block_name(const tensor_slot& slot) {
  return std::string_view(slot.name).substr(0, slot.name.find('.'));
}

std::vector<element_range> blocks_of(std::span<const tensor_slot> layout) {
  std::vector<element_range> blocks;
  std::string_view last;
  for (const auto& slot : layout) {
    const auto name = block_name(slot);
    if (blocks.empty() || name != last) blocks.push_back({slot.offset, slot.offset});
    blocks.back().end = slot.offset + slot.size();
    last = name;
  }
  return blocks;
}

void append(fragment& to, const element_range& range) {
  if (!to.empty() && to.back().end == range.begin)
    to.back().end = range.end;
  else
    to.push_back(range);
}

result<void> check_count(std::size_t count, std::size_t most, std::string_view what) {
  if (count >= 1 && count <= most) return {};
  return failure{"fragments: " + std::to_string(count) + " of " + std::to_string(most) + " " +
                 std::string(what) + "; there must be from 1 to " + std::to_string(most)};
}

std::int64_t sending_shift(const fragment_schedule& s) {
  return s.align == fragment_align::applying ? s.delay : 0;
}

/// The fragment k - 1 with floor(k H / P) = phase, where there is one; `phase` is from 1 to H.
std::optional<std::size_t> fragment_at(const fragment_schedule& s, std::int64_t phase) {
  // floor(k H / P) = phase: k is the smallest number with k H >= phase P.
  const auto k = (phase * s.fragments + s.period - 1) / s.period;
  if (k * s.period / s.fragments != phase) return {};
  return static_cast<std::size_t>(k - 1);
}

} // namespace

std::size_t size_of(const fragment& which) noexcept {
  std::size_t n = 0;
  for (const auto& range : which) n += range.end - range.begin;
  return n;
}

result<std::vector<fragment>> make_fragments(std::span<const tensor_slot> layout, std::size_t count,
                                             fragment_pattern pattern) {
  const auto blocks = blocks_of(layout);
  if (auto sound = check_count(count, blocks.size(), "layers and single tensors"); !sound)
    return failure{sound.error()};
  std::vector<fragment> out(count);
  if (pattern == fragment_pattern::strided) {
    for (std::size_t b = 0; b < blocks.size(); ++b) append(out[b % count], blocks[b]);
    return out;
  }
  for (std::size_t p = 0; p < count; ++p)
    for (std::size_t b = blocks.size() * p / count; b < blocks.size() * (p + 1) / count; ++b)
      append(out[p], blocks[b]);
  return out;
}

result<std::vector<fragment>> make_fragments(std::size_t n, std::size_t count) {
  if (auto sound = check_count(count, n, "elements"); !sound) return failure{sound.error()};
  std::vector<fragment> out;
  std::size_t begin = 0;
  for (std::size_t p = 0; p < count; ++p) {
    const auto end = begin + n / count + (p < n % count ? 1 : 0);
    out.push_back({{begin, end}});
    begin = end;
  }
  return out;
}

void gather(const fragment& which, std::span<const float> vector, std::span<float> out) {
  SHOAL_CHECK(out.size() == size_of(which), "a gathered fragment has the fragment's size");
  auto to = out.begin();
  for (const auto& range : which) {
    SHOAL_CHECK(range.end <= vector.size(), "the fragment lies inside the vector");
    const auto part = vector.subspan(range.begin, range.end - range.begin);
    to = std::copy(part.begin(), part.end(), to);
  }
}

void scatter(const fragment& which, std::span<const float> values, std::span<float> vector) {
  SHOAL_CHECK(values.size() == size_of(which), "scattered values have the fragment's size");
  for (const auto& range : which) {
    SHOAL_CHECK(range.end <= vector.size(), "the fragment lies inside the vector");
    const auto count = range.end - range.begin;
    std::copy_n(values.begin(), count, vector.begin() + static_cast<std::ptrdiff_t>(range.begin));
    values = values.subspan(count);
  }
}

void blend(double alpha, std::span<const float> outer, std::span<float> local) {
  SHOAL_CHECK(outer.size() == local.size(), "outer and local parameters have equal sizes");
  SHOAL_CHECK(alpha >= 0 && alpha <= 1, "alpha is a share");
  if (alpha == 1) return;
  // A product with 0 would keep a NaN.
  if (alpha == 0) {
    std::copy(outer.begin(), outer.end(), local.begin());
    return;
  }
  const auto kept = static_cast<float>(alpha), taken = static_cast<float>(1 - alpha);
  for (std::size_t i = 0; i < local.size(); ++i) local[i] = kept * local[i] + taken * outer[i];
}

result<void> validate(const fragment_schedule& s) {
  auto wrong = [](std::string what) -> result<void> {
    return failure{"fragments: " + std::move(what)};
  };
  constexpr std::int64_t largest = std::int64_t{1} << 30;
  if (s.period < 1 || s.period > largest)
    return wrong("the period must be from 1 to 2^30 local steps");
  if (s.fragments < 1 || s.fragments > s.period)
    return wrong("there must be at least 1 fragment, and at most one for each of the " +
                 std::to_string(s.period) + " local steps of a period");
  const auto gap = s.align == fragment_align::applying ? s.period / s.fragments : s.period;
  if (s.delay < 0 || s.delay >= gap)
    return wrong("the delay must be from 0 to " + std::to_string(gap - 1) + " local steps");
  if (!(s.alpha >= 0 && s.alpha <= 1)) return wrong("alpha must be from 0 to 1");
  return {};
}

std::int64_t first_sent_after(const fragment_schedule& s, std::int64_t p) {
  SHOAL_CHECK(p >= 0 && p < s.fragments, "there is such a fragment");
  return (p + 1) * s.period / s.fragments - sending_shift(s);
}

fragment_actions actions_after(const fragment_schedule& s, std::int64_t t) {
  SHOAL_CHECK(t >= 1, "local steps are counted from 1");
  // The fragment that was due `back` steps ago, in the steps from which t_k counts.
  const auto due = [&](std::int64_t back) -> std::optional<std::size_t> {
    const auto at = t - back + sending_shift(s);
    if (t <= back) return {};
    return fragment_at(s, (at - 1) % s.period + 1);
  };
  return {due(0), due(s.delay)};
}

std::size_t fragment_of_round(const fragment_schedule& s, std::int64_t rounds) {
  SHOAL_CHECK(rounds >= 0, "rounds are counted from 0");
  return static_cast<std::size_t>(rounds % s.fragments);
}

} // namespace shoal::kernels
