#include "scenarios/record/notable_rounds.hpp"

#include "kernels/base/json_text.hpp"
#include "scenarios/record/run_files.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace shoal::scenarios {

result<notable_rounds_list> notable_rounds(const std::filesystem::path& run, std::size_t most) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(run, ignored))
    return failure{fmt::format("no such directory: '{}'", run.string())};
  constexpr std::array words{"slowest", "failed", "split", "partial"};
  std::array<std::vector<notable_round>, words.size()> sorts;
  notable_rounds_list out;
  const auto read = read_events(run, {"round"}, [&](const nlohmann::json& line) {
    notable_round round{line.at("epoch"),
                        line.at("members"),
                        line.at("samples"),
                        line.at("group"),
                        line.at("outcome"),
                        line.at("reason"),
                        duration{line.at("started_ns").get<std::int64_t>()},
                        {},
                        {}};
    round.lasted = duration{line.at("time_ns").get<std::int64_t>()} - round.begun;
    std::size_t sort = 0;
    for (std::size_t i = 1; i < words.size(); ++i)
      if (round.outcome == words[i]) sort = i;
    round.why = words[sort];
    sorts[sort].push_back(std::move(round));
    ++out.of;
  });
  if (!read) return failure{read.error()};
  if (out.of == 0)
    return failure{
        fmt::format("'{}' has no rounds (with record.events: none it cannot have)", run.string())};
  for (auto& sort : sorts)
    std::stable_sort(sort.begin(), sort.end(), [](const notable_round& a, const notable_round& b) {
      return a.lasted > b.lasted;
    });
  for (std::size_t rank = 0; out.rounds.size() < most && rank < most; ++rank)
    for (auto& sort : sorts)
      if (rank < sort.size() && out.rounds.size() < most)
        out.rounds.push_back(std::move(sort[rank]));
  std::stable_sort(
      out.rounds.begin(), out.rounds.end(),
      [](const notable_round& a, const notable_round& b) { return a.begun < b.begun; });
  return out;
}

std::string to_text(const notable_rounds_list& what, const std::string& run) {
  std::string out = fmt::format("{} of {} rounds are worth a look\n", what.rounds.size(), what.of);
  for (const auto& round : what.rounds)
    out += fmt::format("  {:>9.3f} s  {:>8.3f} s long  {:<22} shoal explain {} --round {}\n",
                       to_seconds(round.begun), to_seconds(round.lasted),
                       round.why + (round.reason == "none" ? "" : " (" + round.reason + ")"), run,
                       round.epoch);
  return out + "--flow N explains one transfer\n";
}

std::string to_json(const notable_rounds_list& what) {
  auto out = nlohmann::ordered_json::array();
  for (const auto& round : what.rounds)
    out.push_back({{"epoch", round.epoch},
                   {"group", round.group},
                   {"why", round.why},
                   {"outcome", round.outcome},
                   {"reason", round.reason},
                   {"members", round.members},
                   {"samples", round.samples},
                   {"begun_seconds", to_seconds(round.begun)},
                   {"lasted_seconds", to_seconds(round.lasted)}});
  return json_text(out, 2) + "\n";
}

} // namespace shoal::scenarios
