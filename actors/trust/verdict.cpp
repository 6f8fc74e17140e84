#include "actors/trust/verdict.hpp"

#include "actors/trust/identity.hpp"
#include "kernels/base/text_fields.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace shoal::actors {

namespace {

constexpr std::array<std::string_view, 5> names{"gradient", "product", "aggregate", "distance",
                                                "poisoned"};

failure wrong_verdict(std::string_view what) {
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
                         std::uint32_t members, const key256& culprit) {
  auto out = statement("shoal.verdict");
  out.add(group.high).add(group.low).add(case_id.high).add(case_id.low).add(kind).add(members);
  out.add(culprit.a).add(culprit.b).add(culprit.c).add(culprit.d);
  return out.finish();
}

result<void> check(const verdict& what, const signature_check& is_signed_by) {
  if (what.members < fewest_members)
    return wrong_verdict(
        fmt::format("a group of {} has no judges; it takes {}", what.members, fewest_members));
  if (what.kind >= names.size()) return wrong_verdict("there is no such kind of case");
  if (what.accuser >= what.members || what.accused >= what.members || what.accuser == what.accused)
    return wrong_verdict("a case needs an accuser and another member that is accused");
  const auto kind = static_cast<case_kind>(what.kind);
  if (what.case_id != case_of(what.group, kind, what.accuser, what.accused, what.part))
    return wrong_verdict("the id is not that of the case");
  if (what.by.size() < signatures_needed(what.members))
    return wrong_verdict(fmt::format("{} members of {} signed it, but {} are needed",
                                     what.by.size(), what.members,
                                     signatures_needed(what.members)));
  if (what.by.size() >= what.members) return wrong_verdict("more judges than members");
  const auto text =
      verdict_statement(what.group, what.case_id, what.kind, what.members, what.culprit);
  for (std::size_t i = 0; i < what.by.size(); ++i) {
    if (i > 0 && what.by[i - 1].key >= what.by[i].key)
      return wrong_verdict("a member counts twice");
    if (what.by[i].key == what.culprit) return wrong_verdict("the culprit signed it");
    if (!is_signed_by(what.by[i].key, text, what.by[i].by))
      return wrong_verdict(fmt::format("judge {} did not sign it", i));
  }
  return {};
}

result<void> check(const verdict& what, std::span<const key256> members,
                   const signature_check& is_signed_by) {
  if (auto fine = check(what, is_signed_by); !fine) return fine;
  if (members.size() != what.members)
    return wrong_verdict("the group has another number of members");
  if (what.culprit != members[what.accuser] && what.culprit != members[what.accused])
    return wrong_verdict("the culprit is neither the accuser nor the accused");
  for (const auto& one : what.by)
    if (std::find(members.begin(), members.end(), one.key) == members.end())
      return wrong_verdict("a judge is no member of the group");
  return {};
}

bool holds(const verdict& what, const signature_check& is_signed_by) {
  return check(what, is_signed_by).ok();
}

std::string meaning(const verdict& what) {
  return fmt::format("lost case {} about {}", what.case_id.hex(),
                     what.kind < names.size() ? names[what.kind] : "nothing");
}

std::vector<std::string> said(const verdict& what) {
  return {fmt::format("member {} accuses member {} of round {}, which has {} members", what.accuser,
                      what.accused, what.group.hex(), what.members),
          fmt::format("{} members have signed that {}", what.by.size(), meaning(what))};
}

std::string to_line(const verdict& what) {
  std::vector<std::string> judges;
  for (const auto& one : what.by) judges.push_back(hex_of(one.key) + ":" + hex_of(one.by));
  return fmt::format("verdict {} {} {} {} {} {} {} {}",
                     what.kind < names.size() ? names[what.kind] : "nothing", hex_of(what.culprit),
                     hex_of(what.group), what.accuser, what.accused, what.part, what.members,
                     fmt::join(judges, " "));
}

result<verdict> verdict_from_line(std::string_view line) {
  const auto words = split(line, ' ');
  const failure bad{"not a line of a verdict: expected 'verdict', a kind, the culprit, the group, "
                    "four numbers, and a key and a signature for each judge"};
  if (words.size() < 9 || words[0] != "verdict") return bad;
  verdict out;
  const auto kind = std::find(names.begin(), names.end(), words[1]);
  if (kind == names.end() || !read_hex(words[2], out.culprit) || !read_hex(words[3], out.group) ||
      !read_number(words[4], out.accuser) || !read_number(words[5], out.accused) ||
      !read_number(words[6], out.part) || !read_number(words[7], out.members))
    return bad;
  out.kind = static_cast<std::uint8_t>(kind - names.begin());
  out.case_id =
      case_of(out.group, static_cast<case_kind>(out.kind), out.accuser, out.accused, out.part);
  for (std::size_t i = 8; i < words.size(); ++i) {
    const auto colon = words[i].find(':');
    auto& one = out.by.emplace_back();
    if (colon == std::string_view::npos || !read_hex(words[i].substr(0, colon), one.key) ||
        !read_hex(words[i].substr(colon + 1), one.by))
      return bad;
  }
  return out;
}

} // namespace shoal::actors
