#include "scenarios/observe/guard_book.hpp"

#include "kernels/base/json_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace shoal::scenarios {

namespace {

using json = nlohmann::ordered_json;

/// Adds the entries that `to` lacks.
template <class T>
void unite(std::vector<T>& to, const std::vector<T>& more) {
  for (const auto& one : more)
    if (std::find(to.begin(), to.end(), one) == to.end()) to.push_back(one);
}

void unite_audits(std::vector<guarded_round::audit>& to,
                  const std::vector<guarded_round::audit>& more) {
  for (const auto& one : more) {
    const auto same = std::find_if(to.begin(), to.end(), [&](const auto& other) {
      return other.validator == one.validator && other.target == one.target;
    });
    if (same == to.end())
      to.push_back(one);
    else if (!one.found.empty())
      same->found = one.found;
  }
}

} // namespace

std::string to_json(const guarded_round& what) {
  json out{{"at_ns", what.at.count()},
           {"group", what.group},
           {"epoch", what.epoch},
           {"committed", what.committed}};
  auto audits = json::array(), accusations = json::array(), verdicts = json::array(),
       distances = json::array();
  for (const auto& one : what.audits)
    audits.push_back(json::array({one.validator, one.target, one.found}));
  for (const auto& one : what.accusations)
    accusations.push_back(json::array({one.accuser, one.accused, one.what}));
  for (const auto& one : what.verdicts) verdicts.push_back(json::array({one.culprit, one.what}));
  for (const auto& [member, distance] : what.distances)
    distances.push_back(
        json::array({member, std::isfinite(distance) ? json(distance) : json(nullptr)}));
  out["audits"] = std::move(audits);
  out["accusations"] = std::move(accusations);
  out["verdicts"] = std::move(verdicts);
  out["distances"] = std::move(distances);
  return clean_json_text(out);
}

result<guarded_round> guarded_round_from(std::string_view line) {
  try {
    const auto from = parse_json<json>(line);
    guarded_round out;
    out.at = duration{from.at("at_ns").get<std::int64_t>()};
    from.at("group").get_to(out.group);
    from.at("epoch").get_to(out.epoch);
    from.at("committed").get_to(out.committed);
    for (const auto& one : from.at("audits"))
      out.audits.push_back({one.at(0), one.at(1), one.at(2)});
    for (const auto& one : from.at("accusations"))
      out.accusations.push_back({one.at(0), one.at(1), one.at(2)});
    for (const auto& one : from.at("verdicts")) out.verdicts.push_back({one.at(0), one.at(1)});
    for (const auto& one : from.at("distances"))
      out.distances.emplace_back(one.at(0), one.at(1).is_null()
                                                ? std::numeric_limits<double>::quiet_NaN()
                                                : one.at(1).get<double>());
    return out;
  } catch (const nlohmann::json::exception& wrong) {
    return failure{fmt::format("not a round of a guard: {}", wrong.what())};
  }
}

void guard_book::add(guarded_round what) {
  // A round's lines come close together, so the search ends soon.
  const auto found = std::find_if(all_.rbegin(), all_.rend(),
                                  [&](const auto& one) { return one.group == what.group; });
  if (found == all_.rend()) {
    eventful_ += what.is_eventful() ? 1 : 0;
    all_.push_back(std::move(what));
    drop_oldest();
    return;
  }
  eventful_ -= found->is_eventful() ? 1 : 0;
  found->at = std::max(found->at, what.at);
  found->committed = std::max(found->committed, what.committed);
  unite_audits(found->audits, what.audits);
  unite(found->accusations, what.accusations);
  unite(found->verdicts, what.verdicts);
  if (found->distances.empty()) found->distances = std::move(what.distances);
  eventful_ += found->is_eventful() ? 1 : 0;
}

void guard_book::drop_oldest() {
  if (all_.size() <= most_rounds) return;
  const bool keep = eventful_ <= most_eventful;
  const auto oldest = std::find_if(all_.begin(), all_.end(),
                                   [keep](const auto& one) { return !keep || !one.is_eventful(); });
  if (oldest == all_.end()) return;
  eventful_ -= oldest->is_eventful() ? 1 : 0;
  all_.erase(oldest);
}

} // namespace shoal::scenarios
