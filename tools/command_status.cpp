// shoal status and shoal drain: an operator's question to a running swarm, and an order to a node.
#include "kernels/base/json_text.hpp"
#include "kernels/base/units.hpp"
#include "netem/wire/address.hpp"
#include "netem/wire/credentials.hpp"
#include "netem/wire/send_control_request.hpp"
#include "scenarios/observe/node_report.hpp"
#include "scenarios/schema/diagnostic.hpp"
#include "tools/arguments.hpp"
#include "tools/ask_swarm.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"
#include "tools/wire_arguments.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shoal::tools {

namespace {

using netem::wire::address;
using scenarios::node_report;

struct visit_arguments {
  std::string node, join;
  key_arguments keys;
  bool json = false, links = false;
};

std::string time_text(double seconds) {
  const auto whole = static_cast<std::uint64_t>(seconds);
  if (whole >= 86400) return fmt::format("{}d{:02}h", whole / 86400, whole / 3600 % 24);
  if (whole >= 3600) return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
  return whole >= 60 ? fmt::format("{}m{:02}s", whole / 60, whole % 60) : fmt::format("{}s", whole);
}

std::string round_text(const node_report::round& what) {
  return fmt::format("{}{}{}, {} members, {:.1f} s, {} ago", what.outcome,
                     what.reason == "none" ? "" : " ", what.reason == "none" ? "" : what.reason,
                     what.members, what.seconds, time_text(what.ago_seconds));
}

std::string rate_text(double bits_per_second) {
  const char* const units[] = {"bit/s", "kbit/s", "Mbit/s", "Gbit/s"};
  std::size_t unit = 0;
  for (; unit + 1 < std::size(units) && bits_per_second >= 999.5; ++unit) bits_per_second /= 1000;
  return fmt::format("{:.{}f} {}", bits_per_second, unit == 0 || bits_per_second >= 99.95 ? 0 : 1,
                     units[unit]);
}

std::string delay_text(std::optional<double> seconds) {
  return seconds ? fmt::format("{:.{}f} ms", *seconds * 1e3, *seconds < 0.00995 ? 1 : 0) : "-";
}

/// The traffic over a host's links, and the median of their round trips.
struct link_totals {
  double sends = 0, receives = 0;
  std::optional<double> round_trip;
};

link_totals totals_of(const node_report& of) {
  link_totals out;
  std::vector<double> trips;
  for (const auto& each : of.neighbours) {
    // The traffic over a relay is part of the traffic to the relay.
    if (each.relay.empty()) {
      out.sends += each.sends_bits_per_second;
      out.receives += each.receives_bits_per_second;
    }
    if (each.round_trip_seconds) trips.push_back(*each.round_trip_seconds);
  }
  if (trips.empty()) return out;
  std::nth_element(trips.begin(), trips.begin() + static_cast<std::ptrdiff_t>(trips.size() / 2),
                   trips.end());
  out.round_trip = trips[trips.size() / 2];
  return out;
}

void print_links(const std::map<std::string, seen_host>& hosts) {
  std::size_t longest = 4;
  for (const auto& [name, host] : hosts) longest = std::max(longest, name.size());
  fmt::print("\n{:<{}}  {:<{}}  {:>10}  {:>12}  {:>12}\n", "link", longest, "", longest,
             "round trip", "sends", "receives");
  for (const auto& [name, host] : hosts)
    if (host.says)
      for (const auto& each : host.says->neighbours)
        fmt::print("{:<{}}  {:<{}}  {:>10}  {:>12}  {:>12}{}\n", name, longest, each.name, longest,
                   delay_text(each.round_trip_seconds), rate_text(each.sends_bits_per_second),
                   rate_text(each.receives_bits_per_second),
                   each.relay.empty() ? "" : "  over " + each.relay);
}

/// The banned members, each with the hosts that say so.
void print_bans(const std::map<std::string, seen_host>& hosts) {
  struct ban {
    std::string name, why, since;
    std::vector<std::string> by;
  };
  std::map<std::string, ban> bans; // by member
  for (const auto& [name, host] : hosts) {
    if (!host.says) continue;
    for (const auto& each : host.says->bans) {
      auto& one = bans[each.member];
      if (one.name.empty()) one.name = each.name;
      if (one.since.empty() || each.since < one.since) one.since = each.since;
      if (one.why.empty()) one.why = each.why;
      one.by.push_back(name);
    }
  }
  for (const auto& [member, one] : bans)
    fmt::print("banned: {} (member {}) for {}, since {}, by {} ({})\n",
               one.name.empty() ? "a host without a name" : one.name, member, one.why, one.since,
               one.by.size() == 1 ? "1 host" : fmt::format("{} hosts", one.by.size()),
               fmt::join(one.by, ", "));
}

void print_table(const std::map<std::string, seen_host>& hosts) {
  std::size_t answer = 0, longest = 4, trainers = 0;
  double rate = 0;
  const node_report* ahead = nullptr;
  for (const auto& [name, host] : hosts) {
    longest = std::max(longest, name.size());
    if (!host.says) continue;
    ++answer;
    rate += host.says->samples_per_second;
    trainers += host.says->role == "trainer" ? 1 : 0;
    if (ahead == nullptr || host.says->epoch > ahead->epoch) ahead = &*host.says;
  }
  if (ahead->role == "server")
    fmt::print("{}: {} of {} hosts answer\n\n", ahead->scenario, answer, hosts.size());
  else
    fmt::print("{}: epoch {}{}, {} of {} hosts answer, {} train, {:.1f} samples/s{}\n\n",
               ahead->scenario, ahead->epoch,
               ahead->epochs_planned > 0 ? fmt::format(" of {}", ahead->epochs_planned) : "",
               answer, hosts.size(), trainers, rate,
               ahead->train_loss ? fmt::format(", loss {:.4f}", *ahead->train_loss) : "");
  fmt::print(
      "{:<{}}  {:<9}  {:<11}  {:>6}  {:>9}  {:>12}  {:>12}  {:>10}  {:>5}  {:>7}  last round\n",
      "host", longest, "role", "phase", "epoch", "samples/s", "sends", "receives", "round trip",
      "links", "up");
  for (const auto& [name, host] : hosts) {
    if (!host.says) {
      fmt::print("{:<{}}  {}\n", name, longest,
                 host.where.empty()
                     ? fmt::format("cannot be dialled; {} has a link with it", host.known_from)
                     : "does not answer: " + host.why_not);
      continue;
    }
    const auto& what = *host.says;
    const auto links = totals_of(what);
    fmt::print("{:<{}}  {:<9}  {:<11}  {:>6}  {:>9.1f}  {:>12}  {:>12}  {:>10}  {:>5}  {:>7}  {}\n",
               name, longest, what.role, what.leaving ? "leaving" : what.phase, what.epoch,
               what.samples_per_second, rate_text(links.sends), rate_text(links.receives),
               delay_text(links.round_trip), what.neighbours.size(), time_text(what.up_seconds),
               what.last_rounds.empty()
                   ? (what.role == "shard" || what.role == "server" ? "" : "none yet")
                   : round_text(what.last_rounds.front()));
  }
  // The failures that all answering hosts report.
  std::map<std::string, std::uint64_t> outcomes, reasons;
  std::uint64_t violations = 0;
  for (const auto& [name, host] : hosts) {
    if (!host.says) continue;
    violations += host.says->violations;
    for (const auto& [outcome, count] : host.says->rounds_by_outcome) outcomes[outcome] += count;
    for (const auto& [reason, count] : host.says->rounds_by_reason) reasons[reason] += count;
  }
  if (ahead->role != "server") {
    fmt::print("\nrounds, as each member counts them:");
    for (const auto& [outcome, count] : outcomes) fmt::print(" {} {}", count, outcome);
    for (const auto& [reason, count] : reasons)
      if (count > 0 && reason != "none") fmt::print("\n  {} {}", count, reason);
    fmt::print("\n");
  }
  if (violations > 0)
    fmt::print("invariants violated: {}; the nodes' run directories say which\n", violations);
  print_bans(hosts);
}

void print_json(const std::map<std::string, seen_host>& hosts) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (const auto& [name, host] : hosts)
    out[name] = {{"address", host.where},
                 {"says", host.says ? parse_json<nlohmann::ordered_json>(to_json(*host.says))
                                    : nlohmann::ordered_json(nullptr)},
                 {"why_not", host.why_not}};
  fmt::print("{}\n", json_text(out, 2));
}

/// The first part of both commands: reads the state of the swarm. Without a result the exit code is
/// in `code`, and the reason was printed.
std::optional<std::map<std::string, seen_host>>
look(const visit_arguments& arguments, std::optional<netem::wire::credentials>& keys, int& code) {
  const auto refuse = [&](const std::string& why, int status) {
    code = fail(why, status);
    return std::nullopt;
  };
  const auto join = netem::wire::parse_address(arguments.join);
  if (!join) return refuse("--join: " + join.error(), exit_usage);
  if (code = arguments.keys.load(keys); code != exit_ok) return std::nullopt;
  auto hosts = ask_swarm(*join, keys);
  if (!hosts) return refuse(hosts.error(), exit_run_failed);
  return *std::move(hosts);
}

int status(const visit_arguments& arguments) {
  std::optional<netem::wire::credentials> keys;
  int code = exit_ok;
  const auto hosts = look(arguments, keys, code);
  if (!hosts) return code;
  if (arguments.json)
    print_json(*hosts);
  else
    print_table(*hosts);
  if (arguments.links && !arguments.json) print_links(*hosts);
  return exit_ok;
}

int drain(const visit_arguments& arguments) {
  std::optional<netem::wire::credentials> keys;
  int code = exit_ok;
  const auto hosts = look(arguments, keys, code);
  if (!hosts) return code;
  const auto found = hosts->find(arguments.node);
  if (found == hosts->end()) {
    std::vector<std::string> names;
    for (const auto& [name, host] : *hosts) names.push_back(name);
    return fail(
        fmt::format("there is no '{}' in the swarm; {}", arguments.node,
                    scenarios::did_you_mean(arguments.node, names,
                                            fmt::format("there are {}", fmt::join(names, ", ")))),
        exit_bad_input);
  }
  if (found->second.where.empty())
    return fail(
        fmt::format("{} cannot be dialled: end it where it runs, with SIGTERM, which does the same",
                    arguments.node),
        exit_bad_input);
  const auto where = netem::wire::parse_address(found->second.where);
  if (!where) return fail(where.error(), exit_run_failed);
  auto told = netem::wire::send_control_request(
      *where, keys ? arguments.node : std::string{}, keys ? keys->tls : nullptr,
      keys ? keys->admits : nullptr, "drain", answer_timeout);
  if (!told) return fail(told.error(), exit_run_failed);
  if (found->second.says && found->second.says->role == "server") {
    fmt::print("{} leaves: it takes no new text, and finishes those that it has\n", *told);
    return exit_ok;
  }
  fmt::print("{} leaves: it ends its round, hands back its samples and takes its records out; its "
             "exit status will be {}\n",
             *told, exit_interrupted);
  return exit_ok;
}

void add_common(CLI::App& to, visit_arguments& arguments) {
  to.add_option("--join", arguments.join, "any host of the swarm")
      ->required()
      ->type_name("HOST:PORT");
  arguments.keys.add_to(to);
}

} // namespace

void add_status(CLI::App& app, action& chosen) {
  auto arguments = std::make_shared<visit_arguments>();
  auto* command = app.add_subcommand(
      "status", "show who is in a running swarm, its progress, and its last rounds");
  add_common(*command, *arguments);
  command->add_flag("--links", arguments->links,
                    "also show each link with its round trip and traffic");
  command->add_flag("--json", arguments->json, "print the report of each host as JSON");
  command->callback([arguments, &chosen] { chosen = [arguments] { return status(*arguments); }; });
}

void add_drain(CLI::App& app, action& chosen) {
  auto arguments = std::make_shared<visit_arguments>();
  auto* command = app.add_subcommand(
      "drain", "tell a node of a running swarm to leave it in good order, as SIGTERM does");
  command->add_option("NODE", arguments->node, "its name")->required()->type_name("NODE");
  add_common(*command, *arguments);
  command->callback([arguments, &chosen] { chosen = [arguments] { return drain(*arguments); }; });
}

} // namespace shoal::tools
