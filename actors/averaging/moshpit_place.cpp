#include "actors/averaging/moshpit_place.hpp"

#include "kernels/base/digest.hpp"

#include <algorithm>
#include <string_view>

namespace shoal::actors {

moshpit_place::moshpit_place(const kernels::grid& grid, rng draws)
    : side_(grid.side), draws_(draws), digits_(grid.dimensions - 1) {
  draw();
}

state_id moshpit_place::group(std::uint64_t round) const {
  hasher name;
  name.add(std::string_view{"moshpit"}).add(round);
  for (auto digit : digits_) name.add(std::uint64_t{digit});
  return state_id::from(name.finish());
}

std::uint32_t moshpit_place::digit_after(const round_result& result) const {
  return static_cast<std::uint32_t>((result.member + result.group.low) % side_);
}

void moshpit_place::move_to(std::uint32_t digit) {
  if (digits_.empty()) return;
  std::rotate(digits_.begin(), digits_.begin() + 1, digits_.end());
  digits_.back() = digit % side_;
}

void moshpit_place::draw() {
  for (auto& digit : digits_) digit = any_digit();
}

std::uint32_t moshpit_place::any_digit() {
  return static_cast<std::uint32_t>(draws_.below(side_));
}

} // namespace shoal::actors
