// The options of `security`. Only describe.hpp includes this file.
#pragma once

#include "scenarios/schema/rule.hpp"
#include "scenarios/schema/security_options.hpp"

#include <array>

namespace shoal::scenarios {

constexpr auto names_of(security_kind) {
  using enum security_kind;
  return std::array{enum_name<security_kind>{none, "none"}, enum_name<security_kind>{clip, "clip"},
                    enum_name<security_kind>{btard, "btard"}};
}

template <class V>
void describe(V& v, security_options& o) {
  v.field("kind", o.kind,
          "`none`: members trust each other. `clip`: reducers clip contributions that are far from "
          "the rest (CenteredClip). `btard`: they also check each other, and ban members that send "
          "false values (Gorbunov et al., synchronous method without overlap)");
  v.field("validators", o.validators,
          "`btard`: contributions of a round that other members compute again. An attacker among n "
          "members, of whom b attack, is found out with probability `validators` / n times "
          "(n - b) / n in each round",
          {.at_least = 1, .at_most = 1e6, .hide_default = true});
  v.field("radius", o.radius,
          "distance from the result, in the whole vector, beyond which a contribution is clipped. "
          "A chunk has its share of it, by the root of its length",
          {.above = 0, .hide_default = true});
  v.field("batch", o.batch,
          "samples of a contribution that is clipped at `radius`; one of b samples is clipped at "
          "`radius` times the root of `batch` / b",
          {.at_most = 1e9, .hide_default = true, .otherwise = "target_batch / number of hosts"});
  v.field("most_distance", o.most_distance,
          "`btard`: distance from a part's result that most contributions keep. If more than half "
          "of them are farther away, the members compute the part again. 0: no such check",
          {.at_least = 0, .hide_default = true});
  v.field("commit_time", o.commit_time,
          "`btard`: a member that has not committed to its contribution after this time gives "
          "nothing to the round",
          {.above = 0, .hide_default = true});
  v.field("duty_time", o.duty_time,
          "`btard`: time in which a member reveals, checks, computes again and opens. A member "
          "that misses two duties in 20 rounds sits out 10",
          {.above = 0, .hide_default = true});
  v.field("jurors", o.jurors,
          "`btard`: members that decide a case; 0: all but the accuser and the accused",
          {.at_most = 1e6, .hide_default = true});
  v.field("probation", o.probation,
          "`btard`: rounds in which a newcomer's contribution is checked and does not count",
          {.at_most = 2000, .hide_default = true});
}

} // namespace shoal::scenarios
