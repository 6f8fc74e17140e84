// The members whose contributions are computed again, and their validators, from a round's random
// number. Each member computes the same plan.
//
// A contribution that is far from the rest is computed again besides. That finds loud attackers
// much faster than lots do: b of them are gone after about b n / (n - b) rounds. It costs nothing
// while all members are honest, since honest distances differ little. This is no part of the paper.
//
// Targets are drawn in proportion to their weights, by systematic sampling in a random order. With
// m validators, a member of weight w is a target with probability min(1, m w / W). Validators are m
// different members, drawn uniformly and apart from the targets. A member that is drawn as its own
// validator does nothing, and the plan leaves it out. With equal weights and b attackers among n
// members, an attacker is found out in a round with probability (m / n) ((n - b) / n).
#pragma once

#include "actors/ids.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace shoal::actors {

struct audit {
  std::uint32_t validator = 0, target = 0;
  bool operator==(const audit&) const = default;
};

/// `weights` by member; a member of weight 0 is no target. `may_validate` by member: false for
/// members without a device. At most `validators` audits, in ascending order of targets. A member
/// validates at most one target.
std::vector<audit> plan_audits(const digest& random, std::span<const std::uint64_t> weights,
                               const std::vector<bool>& may_validate, std::uint32_t validators);

/// The member whose contribution is far from the rest. It is the farthest one, if it is more than
/// three times as far from the result as the median member. `distances` by member, each times the
/// root of its weight, because a mean of more samples deviates less. Negative: the member
/// contributes nothing. NaN is far. Nothing if there are fewer than three.
std::optional<std::uint32_t> farthest_member(std::span<const double> distances);

/// The member that computes it again: drawn uniformly from those that may, apart from the suspect.
/// Nothing if there is none.
std::optional<std::uint32_t>
draw_watcher(const digest& random, const std::vector<bool>& may_validate, std::uint32_t suspect);

/// The members that decide a case: all but the accuser and the accused, or `most` of them drawn
/// from the random number and the case. Ascending.
std::vector<std::uint32_t> draw_jurors(const digest& random, const id128& case_id,
                                       std::uint32_t members, std::uint32_t accuser,
                                       std::uint32_t accused, std::uint32_t most);

} // namespace shoal::actors
