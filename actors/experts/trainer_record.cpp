#include "actors/experts/trainer_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

namespace shoal::actors {

std::string expert_trainers_key(std::string_view model) {
  return fmt::format("expert_trainers.{}", model);
}

payload expert_trainer_record::pack() const {
  const std::array<std::uint64_t, 3> all{own, swarm, done ? 1U : 0U};
  std::vector<std::byte> out(sizeof(all));
  std::memcpy(out.data(), all.data(), sizeof(all));
  return payload{std::move(out)};
}

std::optional<expert_trainer_record> expert_trainer_record::unpack(const payload& from) {
  std::array<std::uint64_t, 3> all{};
  if (from.is_size_only() || from.size() != sizeof(all)) return std::nullopt;
  std::memcpy(all.data(), from.bytes().data(), sizeof(all));
  // A count beyond any run would make the sum overflow.
  constexpr std::uint64_t most = std::uint64_t{1} << 48;
  if (all[0] > most || all[1] > most || all[2] > 1) return std::nullopt;
  return expert_trainer_record{all[0], all[1], all[2] == 1};
}

void swarm_samples::read(peer_id trainer, const expert_trainer_record& what) {
  auto& known = of_[trainer];
  known = std::max(known, what.own);
  said_.push_back(what.swarm);
}

void swarm_samples::read_all() {
  if (auto said = std::exchange(said_, {}); !said.empty()) {
    const auto middle = said.begin() + static_cast<std::ptrdiff_t>((said.size() - 1) / 2);
    std::nth_element(said.begin(), middle, said.end());
    known_ = std::max(known_, *middle);
  }
  if (!std::exchange(first_, false)) return;
  std::uint64_t claimed = own_;
  for (const auto& [trainer, samples] : of_) claimed += samples;
  gone_ = known_ > claimed ? known_ - claimed : 0;
}

std::uint64_t swarm_samples::total() const noexcept {
  if (leased_ == 0) return known_;
  auto sum = own_ + gone_;
  for (const auto& [trainer, samples] : of_) sum += samples;
  return std::min(std::max(known_, sum), leased_);
}

} // namespace shoal::actors
