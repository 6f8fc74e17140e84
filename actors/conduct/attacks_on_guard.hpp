// Attacks on the protocol of Byzantine-tolerant rounds (actors/averaging/guard.hpp). Each breaks
// one rule and follows the others, so that a test shows what the rule is for.
#pragma once

#include "actors/conduct/attacks.hpp"
#include "actors/ids.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace shoal::actors {

/// Half of the members get a commitment to another secret.
struct equivocating_commitments final : attack {
  using attack::attack;
  void commit(round_commitment& what, std::uint32_t to) override;

private:
  group_id round_; // the last one
  bool now_ = false;
};

struct wrong_products final : attack {
  using attack::attack;
  void check_parts(part_checks& what) override;
};

struct withheld_secret final : attack {
  using attack::attack;
  bool reveals() override;
};

struct withheld_openings final : attack {
  using attack::attack;
  bool opens() override;
};

/// The member computes nothing again, neither as a validator nor as a juror.
struct idle_validator final : attack {
  using attack::attack;
  bool validates() override;
};

/// The member finds every contribution right, so that accomplices stay.
struct colluding_validator final : attack {
  using attack::attack;
  bool finds_right(const member_info& target, bool right) override;
};

/// The member finds every contribution wrong.
struct framing_validator final : attack {
  using attack::attack;
  bool finds_right(const member_info& target, bool right) override;
};

struct false_accuser final : attack {
  using attack::attack;
  std::optional<std::uint32_t> accuses(const std::vector<member_info>& members) override;
};

} // namespace shoal::actors
