#include "scenarios/observe/case_book.hpp"

#include "kernels/base/json_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace shoal::scenarios {

namespace {

bool add_report(std::vector<case_file::report>& to, const case_event& what) {
  if (to.size() >= case_book::most_reports ||
      std::any_of(to.begin(), to.end(), [&](const auto& one) { return one.by == what.by; }))
    return false;
  to.push_back({what.at, what.by});
  return true;
}

bool add_accusation(case_file& to, const case_event& what) {
  auto& all = to.accusations;
  auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.why == what.text; });
  if (found == all.end()) {
    if (all.size() >= case_book::most_reasons) return false;
    all.push_back({what.text, {}});
    found = all.end() - 1;
  }
  return add_report(found->by, what);
}

bool add_to(case_file& to, const case_event& what) {
  switch (what.what) {
  case case_what::accused:
    return add_accusation(to, what);
  case case_what::proven:
    return add_report(to.proven, what);
  case case_what::banned:
    if (to.proof.empty()) {
      to.deed = what.text;
      to.proof = what.proof;
    }
    return add_report(to.bans, what);
  case case_what::round:
    if (to.rounds.size() >= case_book::most_rounds) return false;
    to.rounds.push_back({what.at, what.text});
    return true;
  }
  return false;
}

} // namespace

std::string to_json(const case_event& what) {
  nlohmann::ordered_json out{{"at_ns", what.at.count()},
                             {"member", what.member},
                             {"what", case_what_names[static_cast<std::size_t>(what.what)]},
                             {"by", what.by},
                             {"text", what.text}};
  if (!what.proof.empty()) out["proof"] = what.proof;
  return clean_json_text(out);
}

result<case_event> case_event_from(std::string_view line) {
  try {
    const auto from = parse_json<nlohmann::json>(line);
    case_event out;
    out.at = duration{from.at("at_ns").get<std::int64_t>()};
    from.at("member").get_to(out.member);
    const auto word = from.at("what").get<std::string>();
    const auto known = std::find(case_what_names.begin(), case_what_names.end(), word);
    if (known == case_what_names.end())
      return failure{fmt::format("no event of a case is called '{}'", word)};
    out.what = static_cast<case_what>(known - case_what_names.begin());
    from.at("by").get_to(out.by);
    from.at("text").get_to(out.text);
    if (from.contains("proof")) from.at("proof").get_to(out.proof);
    return out;
  } catch (const nlohmann::json::exception& wrong) {
    return failure{fmt::format("not an event of a case: {}", wrong.what())};
  }
}

bool case_book::add(const case_event& what) {
  auto found = numbers_.find(what.member);
  if (found == numbers_.end()) {
    if (all_.size() >= most_cases) return false;
    found = numbers_.emplace(what.member, all_.size()).first;
    all_.emplace_back();
    all_.back().member = what.member;
    all_.back().begun = what.at;
  }
  return add_to(all_[found->second], what);
}

} // namespace shoal::scenarios
