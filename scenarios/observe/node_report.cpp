#include "scenarios/observe/node_report.hpp"

#include "actors/averaging/observations.hpp"
#include "actors/data/observations.hpp"
#include "kernels/base/json_text.hpp"
#include "kernels/base/whole_number.hpp"
#include "scenarios/observe/output_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace shoal::scenarios {

namespace {

using json = nlohmann::ordered_json;

json optional_number(const std::optional<double>& value) {
  return value ? json(*value) : json(nullptr);
}

std::optional<double> optional_of(const json& from) {
  return from.is_null() ? std::nullopt : std::optional(from.get<double>());
}

std::map<std::string, std::uint64_t> counts_of(const json& from) {
  if (!from.is_object()) throw json::other_error::create(501, "not counts by name", &from);
  std::map<std::string, std::uint64_t> out;
  for (const auto& [name, count] : from.items()) out[name] = whole_number<std::uint64_t>(count);
  return out;
}

} // namespace

std::string to_json(const node_report& what) {
  json rounds = json::array();
  for (const auto& each : what.last_rounds)
    rounds.push_back({{"epoch", each.epoch},
                      {"members", each.members},
                      {"outcome", each.outcome},
                      {"reason", each.reason},
                      {"seconds", each.seconds},
                      {"ago_seconds", each.ago_seconds}});
  json neighbours = json::array();
  for (const auto& each : what.neighbours)
    neighbours.push_back({{"name", each.name},
                          {"address", each.address},
                          {"relay", each.relay},
                          {"round_trip_seconds", optional_number(each.round_trip_seconds)},
                          {"sends_bits_per_second", each.sends_bits_per_second},
                          {"receives_bits_per_second", each.receives_bits_per_second}});
  json bans = json::array();
  for (const auto& each : what.bans)
    bans.push_back({{"member", each.member},
                    {"name", each.name},
                    {"why", each.why},
                    {"since", each.since},
                    {"line", each.line}});
  const json out{{"name", what.name},
                 {"scenario", what.scenario},
                 {"version", what.version},
                 {"role", what.role},
                 {"phase", what.phase},
                 {"leaving", what.leaving},
                 {"up_seconds", what.up_seconds},
                 {"epoch", what.epoch},
                 {"epochs_planned", what.epochs_planned},
                 {"samples", what.samples},
                 {"samples_per_second", what.samples_per_second},
                 {"train_loss", optional_number(what.train_loss)},
                 {"held_out_loss", optional_number(what.held_out_loss)},
                 {"bytes_sent", what.bytes_sent},
                 {"violations", what.violations},
                 {"rounds_by_outcome", what.rounds_by_outcome},
                 {"rounds_by_reason", what.rounds_by_reason},
                 {"last_rounds", std::move(rounds)},
                 {"neighbours", std::move(neighbours)},
                 {"bans", std::move(bans)},
                 {"contribution", what.contribution}};
  // A name or a text of another host must not end the answer.
  return clean_json_text(out, 2) + "\n";
}

result<node_report> node_report_from_json(std::string_view text) {
  try {
    const auto from = parse_json<json>(text);
    node_report out;
    from.at("name").get_to(out.name);
    from.at("scenario").get_to(out.scenario);
    from.at("version").get_to(out.version);
    from.at("role").get_to(out.role);
    from.at("phase").get_to(out.phase);
    from.at("leaving").get_to(out.leaving);
    from.at("up_seconds").get_to(out.up_seconds);
    out.epoch = whole_number<std::uint64_t>(from.at("epoch"));
    out.epochs_planned = whole_number<std::uint64_t>(from.at("epochs_planned"));
    out.samples = whole_number<std::uint64_t>(from.at("samples"));
    from.at("samples_per_second").get_to(out.samples_per_second);
    out.train_loss = optional_of(from.at("train_loss"));
    out.held_out_loss = optional_of(from.at("held_out_loss"));
    out.bytes_sent = whole_number<std::uint64_t>(from.at("bytes_sent"));
    out.violations = whole_number<std::uint64_t>(from.at("violations"));
    out.rounds_by_outcome = counts_of(from.at("rounds_by_outcome"));
    out.rounds_by_reason = counts_of(from.at("rounds_by_reason"));
    for (const auto& each : from.at("last_rounds")) {
      auto& round = out.last_rounds.emplace_back();
      round.epoch = whole_number<std::uint64_t>(each.at("epoch"));
      round.members = whole_number<std::uint64_t>(each.at("members"));
      each.at("outcome").get_to(round.outcome);
      each.at("reason").get_to(round.reason);
      each.at("seconds").get_to(round.seconds);
      each.at("ago_seconds").get_to(round.ago_seconds);
    }
    for (const auto& each : from.at("neighbours")) {
      auto& neighbour = out.neighbours.emplace_back();
      each.at("name").get_to(neighbour.name);
      each.at("address").get_to(neighbour.address);
      each.at("relay").get_to(neighbour.relay);
      neighbour.round_trip_seconds = optional_of(each.at("round_trip_seconds"));
      each.at("sends_bits_per_second").get_to(neighbour.sends_bits_per_second);
      each.at("receives_bits_per_second").get_to(neighbour.receives_bits_per_second);
    }
    // An older process of the swarm has no bans in its report.
    if (from.contains("bans"))
      for (const auto& each : from.at("bans")) {
        auto& ban = out.bans.emplace_back();
        each.at("member").get_to(ban.member);
        each.at("name").get_to(ban.name);
        each.at("why").get_to(ban.why);
        each.at("since").get_to(ban.since);
        each.at("line").get_to(ban.line);
      }
    from.at("contribution").get_to(out.contribution);
    return out;
  } catch (const nlohmann::json::exception& wrong) {
    return failure{fmt::format("not a node's report: {}", wrong.what())};
  }
}

void node_facts::observe(duration now, const actors::observation& what) {
  if (const auto* changed = actors::get_if<actors::phase_changed>(&what)) {
    phase_ = changed->phase;
    epoch_ = std::max(epoch_, changed->epoch);
  } else if (const auto* step = actors::get_if<actors::stepped>(&what)) {
    epoch_ = std::max(epoch_, step->epoch);
  } else if (const auto* moved = actors::get_if<actors::samples_moved>(&what)) {
    if (moved->to == actors::sample_state::committed)
      epoch_ = std::max(epoch_, moved->epoch + 1); // a shard observes no steps
  } else if (const auto* trained = actors::get_if<actors::trained>(&what)) {
    std::uint64_t count = 0;
    for (const auto& range : trained->samples) count += range.count;
    samples_ += count;
    computed_.emplace_back(now, count);
    while (computed_.front().first < now - window) computed_.pop_front();
  } else if (const auto* ended = actors::get_if<actors::round_ended>(&what)) {
    const auto started =
        ended->started_ns == 0 ? now : duration(static_cast<std::int64_t>(ended->started_ns));
    rounds_.push_back({ended->epoch, ended->members, ended->outcome, ended->reason, started, now});
    if (rounds_.size() > most_rounds) rounds_.pop_front();
  }
}

void node_facts::fill(duration now, node_report& into) const {
  into.phase = phase_name(phase_);
  into.epoch = epoch_;
  into.samples = samples_;
  into.up_seconds = to_seconds(now);
  std::uint64_t lately = 0;
  for (const auto& [when, count] : computed_)
    if (when >= now - window) lately += count;
  into.samples_per_second =
      static_cast<double>(lately) / std::max(1.0, to_seconds(std::min(now, window)));
  for (auto each = rounds_.rbegin(); each != rounds_.rend(); ++each)
    into.last_rounds.push_back(
        {each->epoch, each->members, std::string(actors::to_string(each->outcome)),
         std::string(actors::to_string(each->reason)), to_seconds(each->ended - each->started),
         to_seconds(now - each->ended)});
}

} // namespace shoal::scenarios
