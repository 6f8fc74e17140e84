#include "netem/cut.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>

namespace shoal::netem {

cut cut::apart(std::vector<std::uint32_t> sides, traffic_direction direction) {
  cut out;
  out.direction_ = direction;
  out.sides_ = std::move(sides);
  return out;
}

cut cut::between(const std::vector<std::uint32_t>& selected, traffic_direction direction) {
  std::vector<std::uint32_t> sides;
  for (const auto machine : selected) {
    if (machine >= sides.size()) sides.resize(machine + 1, 0);
    sides[machine] = 1;
  }
  return apart(std::move(sides), direction);
}

cut cut::isolating(const std::vector<std::uint32_t>& selected, traffic_direction direction) {
  std::vector<std::uint32_t> sides;
  std::uint32_t side = 0;
  for (const auto machine : selected) {
    if (machine >= sides.size()) sides.resize(machine + 1, 0);
    sides[machine] = ++side;
  }
  return apart(std::move(sides), direction);
}

cut cut::majorities_ring(const std::vector<std::uint32_t>& members) {
  cut out;
  out.shape_ = cut_shape::ring;
  out.members_ = static_cast<std::uint32_t>(members.size());
  // A majority includes the machine itself: floor(n / 2) others, half of them on each hand, rounded
  // up.
  out.reach_ = (out.members_ / 2 + 1) / 2;
  std::uint32_t place = 0;
  for (const auto machine : members) {
    if (machine >= out.sides_.size()) out.sides_.resize(machine + 1, 0);
    out.sides_[machine] = ++place;
  }
  return out;
}

bool cut::blocks(std::uint32_t from, std::uint32_t to) const noexcept {
  const auto a = side_of(from), b = side_of(to);
  if (shape_ == cut_shape::ring) {
    if (a == 0 || b == 0) return false;
    const auto way = a > b ? a - b : b - a;
    return std::min(way, members_ - way) > reach_;
  }
  if (a == b || a == nobody_elses || b == nobody_elses) return false;
  switch (direction_) {
  case traffic_direction::both:
    return true;
  case traffic_direction::from:
    return a > 0;
  case traffic_direction::to:
    return b > 0;
  }
  return false;
}

std::vector<std::uint32_t> draw_some(std::vector<std::uint32_t> among, std::size_t count,
                                     rng& draws) {
  SHOAL_CHECK(count <= among.size(), "more than there are");
  // The loop does the first steps of a Fisher-Yates shuffle.
  for (std::size_t i = 0; i < count; ++i)
    std::swap(among[i], among[i + draws.below(among.size() - i)]);
  among.resize(count);
  return among;
}

} // namespace shoal::netem
