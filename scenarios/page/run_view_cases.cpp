// The cases of a view and its guarded rounds, as JSON.
#include "scenarios/page/page_text.hpp"
#include "scenarios/page/run_view_state.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace shoal::scenarios {

namespace {

constexpr std::size_t most_cases_shown = 200, most_named = 40, most_rounds_shown = 20;

std::int64_t whole(std::size_t value) {
  return static_cast<std::int64_t>(value);
}

/// The number of reports, and the first ones with their times.
void put(page_text& out, const char* key, const std::vector<case_file::report>& all) {
  out.key(key).open('{').key("count").whole(whole(all.size())).key("first").open('[');
  for (std::size_t i = 0; i < std::min(all.size(), most_named); ++i)
    out.open('[').seconds(all[i].at.count()).text(all[i].by).close(']');
  out.close(']').close('}');
}

} // namespace

std::string run_view::state::cases_text() const {
  page_text out;
  out.open('{').key("total").whole(whole(cases.all().size())).key("rows").open('[');
  for (std::size_t i = 0; i < std::min(cases.all().size(), most_cases_shown); ++i) {
    const auto& one = cases.all()[i];
    out.open('{').key("number").whole(whole(i + 1)).key("member").text(one.member);
    out.key("begun").seconds(one.begun.count()).key("deed").text(one.deed);
    out.key("proof").text(one.proof);
    put(out, "proven", one.proven);
    put(out, "bans", one.bans);
    out.key("accusations").open('[');
    for (const auto& each : one.accusations) {
      out.open('{').key("why").text(each.why);
      put(out, "by", each.by);
      out.close('}');
    }
    out.close(']').key("rounds").open('{').key("count").whole(whole(one.rounds.size()));
    out.key("last").open('[');
    const auto from = one.rounds.size() - std::min(one.rounds.size(), most_rounds_shown);
    for (auto round = from; round < one.rounds.size(); ++round)
      out.open('[').seconds(one.rounds[round].at.count()).text(one.rounds[round].how).close(']');
    out.close(']').close('}').close('}');
  }
  out.close(']').close('}');
  return out.take();
}

/// Names once, and rounds with their indices: names in each round would be most of the text.
std::string run_view::state::guard_text() const {
  std::map<std::string, std::int64_t, std::less<>> numbers;
  std::vector<std::string> names;
  const auto number = [&](const std::string& name) {
    const auto [found, fresh] = numbers.try_emplace(name, whole(names.size()));
    if (fresh) names.push_back(name);
    return found->second;
  };
  page_text out;
  out.open('{').key("rounds").open('[');
  for (const auto& one : guards.all()) {
    out.open('{').key("at").seconds(one.at.count());
    out.key("epoch").whole(static_cast<std::int64_t>(one.epoch));
    out.key("committed").whole(one.committed).key("audits").open('[');
    for (const auto& each : one.audits)
      out.open('[')
          .whole(number(each.validator))
          .whole(number(each.target))
          .text(each.found)
          .close(']');
    out.close(']').key("accusations").open('[');
    for (const auto& each : one.accusations)
      out.open('[')
          .whole(number(each.accuser))
          .whole(number(each.accused))
          .text(each.what)
          .close(']');
    out.close(']').key("verdicts").open('[');
    for (const auto& each : one.verdicts)
      out.open('[').whole(number(each.culprit)).text(each.what).close(']');
    out.close(']').key("distances").open('[');
    for (const auto& [member, distance] : one.distances)
      out.open('[').whole(number(member)).number(distance).close(']');
    out.close(']').close('}');
  }
  out.close(']').key("names").open('[');
  for (const auto& name : names) out.text(name);
  out.close(']').close('}');
  return out.take();
}

} // namespace shoal::scenarios
