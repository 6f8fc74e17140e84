#include "scenarios/observe/summary.hpp"

#include "actors/reasons.hpp"
#include "kernels/base/json_text.hpp"
#include "kernels/base/units.hpp"
#include "scenarios/observe/output_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <limits>

namespace shoal::scenarios {

using json = nlohmann::ordered_json;

std::uint64_t summary::violations() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& [name, totals] : invariants) sum += totals.violated;
  return sum;
}

namespace {

json number(double value) {
  return std::isfinite(value) ? json(value) : json(nullptr);
}
json number(const std::optional<double>& value) {
  return value ? number(*value) : json(nullptr);
}
json text(const std::optional<std::string>& value) {
  return value ? json(*value) : json(nullptr);
}

using reach_field = std::pair<const char*, std::uint64_t summary::reach_totals::*>;
constexpr std::array reach_fields{
    reach_field{"open", &summary::reach_totals::open},
    reach_field{"cone", &summary::reach_totals::cone},
    reach_field{"symmetric", &summary::reach_totals::symmetric},
    reach_field{"outbound_only", &summary::reach_totals::outbound_only},
    reach_field{"unknown", &summary::reach_totals::unknown},
    reach_field{"right", &summary::reach_totals::right},
    reach_field{"wrong", &summary::reach_totals::wrong}};
constexpr std::array connection_fields{reach_field{"direct", &summary::reach_totals::direct},
                                       reach_field{"reversed", &summary::reach_totals::reversed},
                                       reach_field{"punched", &summary::reach_totals::punched},
                                       reach_field{"relayed", &summary::reach_totals::relayed}};
constexpr std::array unreachable_fields{
    reach_field{"no_relay", &summary::reach_totals::no_relay},
    reach_field{"relay_spent", &summary::reach_totals::relay_spent}};

using security_field = std::pair<const char*, std::uint64_t summary::security_totals::*>;
constexpr std::array security_fields{
    security_field{"attackers", &summary::security_totals::attackers},
    security_field{"attackers_banned", &summary::security_totals::attackers_banned},
    security_field{"honest_banned", &summary::security_totals::honest_banned},
    security_field{"audits", &summary::security_totals::audits},
    security_field{"passed", &summary::security_totals::passed},
    security_field{"wrong", &summary::security_totals::wrong},
    security_field{"accusations", &summary::security_totals::accusations},
    security_field{"verdicts", &summary::security_totals::verdicts},
    security_field{"missed_duties", &summary::security_totals::missed_duties}};

template <class Fields>
void put(json& into, const summary::reach_totals& from, const Fields& fields) {
  for (const auto& [name, member] : fields) into[name] = from.*member;
}
template <class Fields>
void take(const json& from, summary::reach_totals& into, const Fields& fields) {
  for (const auto& [name, member] : fields)
    into.*member = from.at(name).template get<std::uint64_t>();
}

json as_json(const summary& what) {
  json out;
  out["scenario"] = what.scenario;
  out["seed"] = what.seed;
  out["world"] = what.world;
  out["event_hash"] = text(what.event_hash);
  out["state_hash"] = text(what.state_hash);
  out["virtual_seconds"] = number(what.virtual_seconds);
  out["wall_seconds"] = number(what.wall_seconds);
  out["peak_rss_bytes"] = what.peak_rss_bytes;
  out["epochs"] = what.epochs;
  out["samples"] = what.samples;
  out["loss"] = {{"first", number(what.loss.first)},
                 {"final", number(what.loss.final)},
                 {"baseline", number(what.loss.baseline)},
                 {"bigram", number(what.loss.bigram)}};
  json reasons = json::object();
  for (const auto& [name, count] : what.rounds.by_reason) reasons[name] = count;
  out["rounds"] = {
      {"ok", what.rounds.ok},       {"partial", what.rounds.partial},
      {"split", what.rounds.split}, {"failed", what.rounds.failed},
      {"by_reason", reasons},       {"mean_seconds", number(what.rounds.mean_seconds)}};
  out["bytes_sent"] = {{"data", what.bytes_sent.data},
                       {"averaging", what.bytes_sent.averaging},
                       {"state", what.bytes_sent.state},
                       {"control", what.bytes_sent.control}};
  out["peers"] = {
      {"joined", what.peers.joined}, {"left", what.peers.left}, {"alive", what.peers.alive}};
  out["faults"] = {{"struck", what.faults_struck}};
  json reach(nullptr);
  if (what.reachability) {
    put(reach, *what.reachability, reach_fields);
    put(reach["connections"], *what.reachability, connection_fields);
    reach["relayed_bytes"] = what.reachability->relayed_bytes;
    put(reach["unreachable"], *what.reachability, unreachable_fields);
  }
  out["reachability"] = reach;
  if (!what.days.empty()) {
    json& days = out["days"] = json::array();
    for (const auto& day : what.days)
      days.push_back({{"peers", number(day.peers)},
                      {"epochs", day.epochs},
                      {"samples", day.samples},
                      {"bytes_sent", day.bytes_sent}});
  }
  for (const auto& one : what.accusations)
    out["accusations"].push_back(
        {{"host", one.host}, {"why", one.why}, {"times", one.times}, {"reporters", one.reporters}});
  if (what.epochs_planned) out["epochs_planned"] = *what.epochs_planned;
  json checks = json::object();
  for (const auto& [name, totals] : what.invariants) {
    json& one = checks[name] = {{"checked", totals.checked}, {"violated", totals.violated}};
    if (!totals.first_violation.empty()) one["first_violation"] = totals.first_violation;
  }
  out["distortion"] = what.distortion
                          ? json{{"late_steps", what.distortion->late_steps},
                                 {"late_seconds", number(what.distortion->late_seconds)}}
                          : json(nullptr);
  if (what.security) {
    json& security = out["security"];
    for (const auto& [name, member] : security_fields) security[name] = (*what.security).*member;
    const auto epoch = [](const std::optional<std::uint64_t>& at) {
      return at ? json(*at) : json(nullptr);
    };
    security["first_ban"] = epoch(what.security->first_ban);
    security["last_ban"] = epoch(what.security->last_ban);
  }
  out["invariants"] = checks;
  return out;
}

std::optional<double> optional_number(const json& from) {
  return from.is_null() ? std::nullopt : std::optional<double>(from.get<double>());
}
std::optional<std::string> optional_text(const json& from) {
  return from.is_null() ? std::nullopt : std::optional<std::string>(from.get<std::string>());
}

} // namespace

std::string to_json(const summary& what) {
  // A path may hold bytes that are not UTF-8; the file must be JSON all the same.
  return clean_json_text(as_json(what), 2) + "\n";
}

result<summary> summary_from_json(std::string_view from) {
  try {
    const json in = parse_json<json>(from);
    summary out;
    out.scenario = in.at("scenario").get<std::string>();
    out.seed = in.at("seed").get<std::uint64_t>();
    out.world = in.at("world").get<std::string>();
    out.event_hash = optional_text(in.at("event_hash"));
    out.state_hash = optional_text(in.at("state_hash"));
    out.virtual_seconds = in.at("virtual_seconds").get<double>();
    out.wall_seconds = in.at("wall_seconds").get<double>();
    out.peak_rss_bytes = in.at("peak_rss_bytes").get<std::uint64_t>();
    out.epochs = in.at("epochs").get<std::uint64_t>();
    out.samples = in.at("samples").get<std::uint64_t>();
    const json& loss = in.at("loss");
    out.loss = {optional_number(loss.at("first")), optional_number(loss.at("final")),
                optional_number(loss.at("baseline")), optional_number(loss.at("bigram"))};
    const json& rounds = in.at("rounds");
    out.rounds = {rounds.at("ok").get<std::uint64_t>(),
                  rounds.at("partial").get<std::uint64_t>(),
                  rounds.at("split").get<std::uint64_t>(),
                  rounds.at("failed").get<std::uint64_t>(),
                  {},
                  rounds.contains("mean_seconds") ? optional_number(rounds.at("mean_seconds"))
                                                  : std::nullopt};
    for (const auto& [name, count] : rounds.at("by_reason").items())
      out.rounds.by_reason[name] = count.get<std::uint64_t>();
    const json& bytes = in.at("bytes_sent");
    out.bytes_sent = {
        bytes.at("data").get<std::uint64_t>(), bytes.at("averaging").get<std::uint64_t>(),
        bytes.at("state").get<std::uint64_t>(), bytes.at("control").get<std::uint64_t>()};
    const json& peers = in.at("peers");
    out.peers = {peers.at("joined").get<std::uint64_t>(), peers.at("left").get<std::uint64_t>(),
                 peers.at("alive").get<std::uint64_t>()};
    if (in.contains("faults")) // older versions did not count faults
      out.faults_struck = in.at("faults").at("struck").get<std::uint64_t>();
    if (in.contains("reachability") && !in.at("reachability").is_null()) {
      const json& reach = in.at("reachability");
      auto& totals = out.reachability.emplace();
      take(reach, totals, reach_fields);
      take(reach.at("connections"), totals, connection_fields);
      totals.relayed_bytes = reach.at("relayed_bytes").get<std::uint64_t>();
      take(reach.at("unreachable"), totals, unreachable_fields);
    }
    if (in.contains("distortion") && !in.at("distortion").is_null()) {
      const json& late = in.at("distortion");
      out.distortion = {late.at("late_steps").get<std::uint64_t>(),
                        late.at("late_seconds").get<double>()};
    }
    if (in.contains("security")) {
      const json& security = in.at("security");
      auto& totals = out.security.emplace();
      for (const auto& [name, member] : security_fields)
        totals.*member = security.at(name).get<std::uint64_t>();
      const auto epoch = [](const json& at) {
        return at.is_null() ? std::nullopt : std::optional(at.get<std::uint64_t>());
      };
      totals.first_ban = epoch(security.at("first_ban"));
      totals.last_ban = epoch(security.at("last_ban"));
    }
    if (in.contains("days"))
      for (const json& day : in.at("days"))
        out.days.push_back({day.at("peers").get<double>(), day.at("epochs").get<std::uint64_t>(),
                            day.at("samples").get<std::uint64_t>(),
                            day.at("bytes_sent").get<std::uint64_t>()});
    if (in.contains("accusations"))
      for (const json& one : in.at("accusations"))
        out.accusations.push_back(
            {one.at("host").get<std::string>(), one.at("why").get<std::string>(),
             one.at("times").get<std::uint64_t>(), one.at("reporters").get<std::uint64_t>()});
    if (in.contains("epochs_planned"))
      out.epochs_planned = in.at("epochs_planned").get<std::uint64_t>();
    for (const auto& [name, one] : in.at("invariants").items()) {
      out.invariants.emplace_back(name,
                                  summary::check_totals{one.at("checked").get<std::uint64_t>(),
                                                        one.at("violated").get<std::uint64_t>(),
                                                        one.value("first_violation", "")});
    }
    return out;
  } catch (const json::exception& e) {
    return failure{fmt::format("not a summary: {}", e.what())};
  }
}

std::optional<double> summary_number(const summary& what, std::string_view path) {
  if (path == "peers_alive") path = "peers.alive";
  const json whole = as_json(what);
  const json* at = &whole;
  std::string_view rest = path;
  while (!rest.empty()) {
    const std::size_t dot = rest.find('.');
    const std::string key(rest.substr(0, dot));
    if (!at->is_object()) return std::nullopt;
    const auto found = at->find(key);
    if (found == at->end()) {
      const bool reason = path.starts_with("rounds.by_reason.") &&
                          std::find(actors::reason_names.begin(), actors::reason_names.end(),
                                    key) != actors::reason_names.end();
      return reason ? std::optional<double>(0) : std::nullopt;
    }
    at = &*found;
    rest = dot == std::string_view::npos ? std::string_view{} : rest.substr(dot + 1);
  }
  return at->is_number() ? std::optional<double>(at->get<double>()) : std::nullopt;
}

namespace {

std::string grouped(std::uint64_t value) {
  std::string out = std::to_string(value);
  for (std::size_t at = out.size(); at > 3;) out.insert(at -= 3, 1, ',');
  return out;
}

constexpr std::size_t most_day_rows = 20;
constexpr std::size_t most_accusation_rows = 12;

std::string security_text(const summary::security_totals& of) {
  std::string out = fmt::format("{} of {} attackers banned", of.attackers_banned, of.attackers);
  if (of.last_ban) out += fmt::format(" by step {} (first: {})", *of.last_ban, *of.first_ban);
  out += of.honest_banned == 0 ? std::string(", no honest member")
                               : fmt::format(", AND {} HONEST MEMBERS", of.honest_banned);
  return out + fmt::format("; {} audits, {} of them wrong; {} accusations, {} verdicts, {} missed "
                           "duties",
                           grouped(of.audits), of.wrong, of.accusations, of.verdicts,
                           of.missed_duties);
}

/// A row for each day. A long run has several days in a row, so that there are at most
/// `most_day_rows` rows.
std::string days_table(const summary& what) {
  const std::size_t count = what.days.size();
  const std::size_t together = (count + most_day_rows - 1) / most_day_rows;
  std::string out = fmt::format("  {:<12} {:>6} {:>8} {:>12} {:>14}\n", "day", "peers", "steps",
                                "samples", "sent by a peer");
  for (std::size_t first = 0; first < count; first += together) {
    const std::size_t end = std::min(first + together, count);
    summary::day_totals sum;
    for (std::size_t i = first; i < end; ++i) {
      const auto& day = what.days[i];
      sum.peers += day.peers / static_cast<double>(end - first);
      sum.epochs += day.epochs;
      sum.samples += day.samples;
      sum.bytes_sent += day.bytes_sent;
    }
    const std::string name =
        together == 1 ? fmt::format("{}", first + 1) : fmt::format("{} to {}", first + 1, end);
    const auto by_one = sum.peers > 0 ? static_cast<double>(sum.bytes_sent) / sum.peers : 0.0;
    out +=
        fmt::format("  {:<12} {:>6.1f} {:>8} {:>12} {:>14}\n", name, sum.peers, grouped(sum.epochs),
                    grouped(sum.samples), bytes_text(static_cast<std::uint64_t>(by_one)));
  }
  if (what.epochs_planned)
    out += fmt::format("  {:<12} {} of {} steps ({:.1f} %)\n", "schedule", grouped(what.epochs),
                       grouped(*what.epochs_planned),
                       100 * static_cast<double>(what.epochs) /
                           static_cast<double>(std::max<std::uint64_t>(*what.epochs_planned, 1)));
  return out;
}

} // namespace

std::string table(const summary& what) {
  std::string out;
  const auto row = [&](std::string_view name, const std::string& value) {
    out += fmt::format("  {:<12} {}\n", name, value);
  };
  out += fmt::format("{}, seed {}, world {}\n", what.scenario, what.seed, what.world);
  row("time",
      fmt::format("{} {}, computed in {}, {} of memory at most", seconds_text(what.virtual_seconds),
                  what.world == "sim" ? "virtual" : "real", seconds_text(what.wall_seconds),
                  bytes_text(what.peak_rss_bytes)));
  row("peers",
      fmt::format(
          "{} joined, {} left, {} alive{}", what.peers.joined, what.peers.left, what.peers.alive,
          what.faults_struck == 0 ? "" : fmt::format("; {} struck by faults", what.faults_struck)));
  row("training",
      fmt::format("{} epochs, {} samples", grouped(what.epochs), grouped(what.samples)));
  if (what.loss.first || what.loss.final) {
    std::string text;
    const auto part = [&](std::string_view name, std::optional<double> value) {
      if (value) text += fmt::format("{}{} {:.4f}", text.empty() ? "" : ", ", name, *value);
    };
    part("first", what.loss.first);
    part("final", what.loss.final);
    part("one machine", what.loss.baseline);
    part("bigrams", what.loss.bigram);
    row("loss", text);
  }
  std::string reasons;
  for (const auto& [name, count] : what.rounds.by_reason)
    reasons += fmt::format("{}{} {}", reasons.empty() ? " (" : ", ", name, count);
  if (!reasons.empty()) reasons += ")";
  row("rounds", fmt::format("{} ok, {} partial, {} split, {} failed{}", what.rounds.ok,
                            what.rounds.partial, what.rounds.split, what.rounds.failed, reasons));
  row("sent", fmt::format("data {}, averaging {}, state {}, control {}",
                          bytes_text(what.bytes_sent.data), bytes_text(what.bytes_sent.averaging),
                          bytes_text(what.bytes_sent.state), bytes_text(what.bytes_sent.control)));
  if (what.security) row("security", security_text(*what.security));
  if (what.reachability) {
    const auto& r = *what.reachability;
    row("reach",
        fmt::format("{} open, {} cone, {} symmetric, {} outbound only, {} unknown ({} learned "
                    "right, {} wrong); "
                    "relayed {}, {} messages reached nobody",
                    r.open, r.cone, r.symmetric, r.outbound_only, r.unknown, r.right, r.wrong,
                    bytes_text(r.relayed_bytes), grouped(r.no_relay + r.relay_spent)));
  }
  if (!what.days.empty()) out += days_table(what);
  for (std::size_t i = 0; i < std::min(what.accusations.size(), most_accusation_rows); ++i) {
    const auto& one = what.accusations[i];
    row(i == 0 ? "accused" : "",
        fmt::format("{}, {} times by {} host{}: {}", one.host.empty() ? "a stranger" : one.host,
                    grouped(one.times), one.reporters, one.reporters == 1 ? "" : "s", one.why));
  }
  if (what.accusations.size() > most_accusation_rows)
    row("",
        fmt::format("and {} more in summary.json", what.accusations.size() - most_accusation_rows));
  std::uint64_t checked = 0;
  for (const auto& [name, totals] : what.invariants) checked += totals.checked;
  row("invariants",
      fmt::format("{} of {} kinds checked {} times, {} violated",
                  std::count_if(what.invariants.begin(), what.invariants.end(),
                                [](const auto& x) { return x.second.checked > 0; }),
                  what.invariants.size(), grouped(checked), grouped(what.violations())));
  for (const auto& [name, totals] : what.invariants)
    if (totals.violated > 0)
      row("", fmt::format("{} violated {} times, first {}", name, grouped(totals.violated),
                          totals.first_violation));
  if (what.event_hash) row("event hash", *what.event_hash);
  if (what.state_hash) row("state hash", *what.state_hash);
  return out;
}

std::uint64_t peak_rss_bytes() {
  // getrusage() does not do here: its peak includes the memory of the process that started this
  // one.
  std::ifstream status("/proc/self/status");
  for (std::string key; status >> key;
       status.ignore(std::numeric_limits<std::streamsize>::max(), '\n'))
    if (std::uint64_t kibibytes = 0; key == "VmHWM:" && status >> kibibytes)
      return kibibytes * 1024;
  return 0;
}

} // namespace shoal::scenarios
