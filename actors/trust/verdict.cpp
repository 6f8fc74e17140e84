#include "actors/trust/verdict.hpp"

#include "actors/averaging/certificate.hpp"
#include "actors/host.hpp"
#include "actors/trust/identity.hpp"

#include <caf/actor_cast.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace shoal::actors {

namespace {

constexpr std::array<std::string_view, 5> names{"gradient", "product", "aggregate", "distance",
                                                "poisoned"};

failure wrong(std::string_view what) {
  return {fmt::format("the verdict is wrong: {}", what)};
}

} // namespace

std::string_view name_of(case_kind kind) {
  return names[static_cast<std::size_t>(kind)];
}

id128 case_of(const group_id& group, case_kind kind, std::uint32_t accuser, std::uint32_t accused,
              std::uint32_t part) {
  auto out = statement("shoal.case");
  out.add(group.high).add(group.low).add(kind).add(accuser).add(accused).add(part);
  return id128::from(out.finish());
}

digest verdict_statement(const group_id& group, const id128& case_id, std::uint8_t kind,
                         std::uint32_t culprit) {
  auto out = statement("shoal.verdict");
  out.add(group.high).add(group.low).add(case_id.high).add(case_id.low).add(kind).add(culprit);
  return out.finish();
}

result<void> check(const verdict& what, const signature_check& is_signed_by) {
  const auto& members = what.roster.members;
  const auto count = static_cast<std::uint32_t>(members.size());
  if (count < fewest_members)
    return wrong(fmt::format("a group of {} has no judges; it takes {}", count, fewest_members));
  if (auto fine = check_roster(what.roster, is_signed_by); !fine) return fine;
  if (what.kind >= names.size()) return wrong("there is no such kind of case");
  if (what.accuser >= count || what.accused >= count || what.accuser == what.accused)
    return wrong("a case needs an accuser and another member that is accused");
  if (what.culprit != what.accuser && what.culprit != what.accused)
    return wrong("the culprit is neither the accuser nor the accused");
  const auto kind = static_cast<case_kind>(what.kind);
  if (what.case_id != case_of(what.roster.group, kind, what.accuser, what.accused, what.part))
    return wrong("the id is not that of the case");
  if (what.by.size() < signatures_needed(count))
    return wrong(fmt::format("{} members of {} signed it, but {} are needed", what.by.size(), count,
                             signatures_needed(count)));
  const auto text = verdict_statement(what.roster.group, what.case_id, what.kind, what.culprit);
  for (std::size_t i = 0; i < what.by.size(); ++i) {
    const auto member = what.by[i].member;
    if (i > 0 && what.by[i - 1].member >= member) return wrong("a member counts twice");
    if (member >= count || member == what.culprit)
      return wrong("somebody signed it that is no judge of the case");
    if (!is_signed_by(members[member].key, text, what.by[i].by))
      return wrong(fmt::format("member {} did not sign it", member));
  }
  return {};
}

result<void> check(const verdict& what, host& by) {
  const auto signed_by = [&](const key256& key, const digest& text, const signature& with) {
    return by.is_signed_by(key, text, with);
  };
  if (auto fine = check(what, signed_by); !fine) return fine;
  const auto& members = what.roster.members;
  for (const auto& who : members)
    if (member_of(who.key) != by.member_of(caf::actor_cast<caf::strong_actor_ptr>(who.address)))
      return wrong("an address belongs to another key");
  const auto admitted = std::count_if(what.by.begin(), what.by.end(), [&](const auto& judge) {
    return by.admits(members[judge.member].key, {});
  });
  if (admitted < signatures_needed(static_cast<std::uint32_t>(members.size())))
    return wrong("too few judges are known to be admitted");
  return {};
}

std::string meaning(const verdict& what) {
  return fmt::format("lost case {} about {}", what.case_id.hex(),
                     what.kind < names.size() ? names[what.kind] : "nothing");
}

} // namespace shoal::actors
