#include "actors/conduct/attacks_on_guard.hpp"

#include "actors/averaging/guard_messages.hpp"

#include <bit>
#include <mutex>

namespace shoal::actors {

void equivocating_commitments::commit(round_commitment& what, std::uint32_t to) {
  std::lock_guard guard(mutex_);
  if (what.group != round_) {
    round_ = what.group;
    now_ = strikes();
  }
  if (now_ && to % 2 == 1) what.secret.low ^= 1;
}

void wrong_products::check_parts(part_checks& what) {
  std::lock_guard guard(mutex_);
  if (!strikes()) return;
  for (auto& bits : what.products)
    bits = std::bit_cast<std::uint64_t>(std::bit_cast<double>(bits) + how_.strength);
}

bool withheld_secret::reveals() {
  std::lock_guard guard(mutex_);
  return !strikes();
}

bool withheld_openings::opens() {
  std::lock_guard guard(mutex_);
  return !strikes();
}

bool idle_validator::validates() {
  std::lock_guard guard(mutex_);
  return !strikes();
}

bool colluding_validator::finds_right(const member_info&, bool right) {
  std::lock_guard guard(mutex_);
  return right || strikes();
}

bool framing_validator::finds_right(const member_info&, bool right) {
  std::lock_guard guard(mutex_);
  return right && !strikes();
}

std::optional<std::uint32_t> false_accuser::accuses(const std::vector<member_info>& members) {
  std::lock_guard guard(mutex_);
  if (members.size() < 2 || !strikes()) return std::nullopt;
  auto whom = static_cast<std::uint32_t>(draws_.below(members.size() - 1));
  // Not itself.
  std::uint32_t self = 0;
  while (self < members.size() && members[self].peer != on_.id()) ++self;
  return whom < self ? whom : whom + 1;
}

} // namespace shoal::actors
