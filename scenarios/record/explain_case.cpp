#include "scenarios/record/explain_case.hpp"

#include "actors/trust/proof.hpp"
#include "kernels/base/json_text.hpp"
#include "scenarios/record/run_files.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <utility>

namespace shoal::scenarios {

namespace {

constexpr std::size_t most_named = 8;

std::string when(duration at) {
  return fmt::format("{:10.3f} s", to_seconds(at));
}

/// '3 hosts (a, b, c)', with the first hosts only.
std::string hosts_text(const std::vector<case_file::report>& all) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(all.size(), most_named); ++i) names.push_back(all[i].by);
  return fmt::format("{} host{} ({}{})", all.size(), all.size() == 1 ? "" : "s",
                     fmt::join(names, ", "), all.size() > most_named ? ", ..." : "");
}

result<case_book> read_cases(const std::filesystem::path& run) {
  case_book out;
  const auto file = whole_or_partial(run, cases_file);
  if (!file)
    return failure{fmt::format("'{}' has no {}: no host accused another one in this run",
                               run.string(), cases_file)};
  std::ifstream in(*file);
  std::size_t number = 1;
  for (std::string line; std::getline(in, line) && !in.eof(); ++number) {
    const auto event = case_event_from(line);
    if (!event)
      return failure{fmt::format("'{}', line {}: {}", file->string(), number, event.error())};
    out.add(*event);
  }
  return out;
}

std::string one_line(const case_file& what) {
  return what.bans.empty()
             ? fmt::format("{}, accused of '{}'", what.member,
                           what.accusations.empty() ? what.deed : what.accusations.front().why)
             : fmt::format("{}, banned for {}", what.member, what.deed);
}

nlohmann::ordered_json reports_json(const std::vector<case_file::report>& all) {
  auto out = nlohmann::ordered_json::array();
  for (const auto& one : all) out.push_back({{"at_seconds", to_seconds(one.at)}, {"by", one.by}});
  return out;
}

} // namespace

result<case_explanation> explain_case(const std::filesystem::path& run, std::uint64_t number) {
  const auto book = read_cases(run);
  if (!book) return failure{book.error()};
  const auto& all = book->all();
  if (number == 0 || number > all.size()) {
    std::string known;
    for (std::size_t i = 0; i < std::min(all.size(), most_named); ++i)
      known += fmt::format("\n  {}: {}", i + 1, one_line(all[i]));
    if (all.size() > most_named) known += fmt::format("\n  and {} more", all.size() - most_named);
    return failure{
        fmt::format("there is no case {} in '{}'; its cases are:{}", number, run.string(), known)};
  }
  case_explanation out{number, all[number - 1], {}, {}};
  if (out.what.proof.empty()) return out;
  const auto proof = actors::proof_in_swarm_from(out.what.proof);
  if (!proof) return failure{fmt::format("the proof of case {}: {}", number, proof.error())};
  out.statements = actors::statements_in(proof->what);
  out.checked = proof->swarm.empty()
                    ? "a simulation's signatures are stand-ins, which nobody can check"
                : actors::holds(*proof) ? "the signatures are genuine"
                                        : "THE SIGNATURES ARE FORGED: the proof does not hold";
  return out;
}

std::string to_text(const case_explanation& what) {
  const auto& file = what.what;
  std::string out = fmt::format("case {}: {}\n", what.number, one_line(file));
  // The events in the order of time. Events of one time keep the order of a case.
  std::vector<std::pair<duration, std::string>> story;
  for (const auto& each : file.accusations)
    story.emplace_back(each.by.front().at, fmt::format("{} say{} of it: {}", hosts_text(each.by),
                                                       each.by.size() == 1 ? "s" : "", each.why));
  if (!file.proven.empty())
    story.emplace_back(file.proven.front().at,
                       fmt::format("{} receive{} both statements, signed by {}",
                                   hosts_text(file.proven), file.proven.size() == 1 ? "s" : "",
                                   file.member));
  if (!file.bans.empty()) {
    story.emplace_back(file.bans.front().at,
                       fmt::format("{} checks the proof and bans it", file.bans.front().by));
    if (file.bans.size() > 1)
      story.emplace_back(file.bans.back().at,
                         fmt::format("the last of {} bans it", hosts_text(file.bans)));
  }
  for (const auto& each : file.rounds)
    story.emplace_back(each.at, fmt::format("a round with it ends: {}", each.how));
  std::stable_sort(story.begin(), story.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [at, text] : story) out += fmt::format("{}  {}\n", when(at), text);
  if (file.proof.empty()) {
    out += "There is no proof, so nobody banned it.\n";
  } else {
    out += fmt::format("\n{} signed:\n", file.member);
    for (const auto& each : what.statements) out += fmt::format("  - {}\n", each);
    out += fmt::format("The proof ({}):\n  {}\n", what.checked, file.proof);
  }
  out += fmt::format("It led to: {} round{} that did not end well, {} host{} that banned it.\n",
                     file.rounds.size(), file.rounds.size() == 1 ? "" : "s", file.bans.size(),
                     file.bans.size() == 1 ? "" : "s");
  return out;
}

std::string to_json(const case_explanation& what) {
  const auto& file = what.what;
  auto accusations = nlohmann::ordered_json::array(), rounds = nlohmann::ordered_json::array();
  for (const auto& each : file.accusations)
    accusations.push_back({{"why", each.why}, {"by", reports_json(each.by)}});
  for (const auto& each : file.rounds)
    rounds.push_back({{"at_seconds", to_seconds(each.at)}, {"how", each.how}});
  const nlohmann::ordered_json out{{"case", what.number},
                                   {"member", file.member},
                                   {"deed", file.deed},
                                   {"accusations", std::move(accusations)},
                                   {"proven", reports_json(file.proven)},
                                   {"bans", reports_json(file.bans)},
                                   {"rounds", std::move(rounds)},
                                   {"statements", what.statements},
                                   {"proof", file.proof},
                                   {"checked", what.checked}};
  return clean_json_text(out, 2) + "\n";
}

} // namespace shoal::scenarios
