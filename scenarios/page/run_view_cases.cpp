// The cases of a view, as JSON.
#include "scenarios/page/page_text.hpp"
#include "scenarios/page/run_view_state.hpp"

#include <algorithm>

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

} // namespace shoal::scenarios
