#include "scenarios/record/explain.hpp"

#include "kernels/base/json_text.hpp"
#include "scenarios/observe/output_text.hpp"
#include "scenarios/record/round_bound.hpp"
#include "scenarios/record/run_files.hpp"
#include "scenarios/schema/load.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

namespace shoal::scenarios {

namespace {

using json = nlohmann::ordered_json;

constexpr const char* transfers_file = "transfers.jsonl.zst";

template <class Json>
explained_transfer parse(const Json& line) {
  explained_transfer t;
  t.number = line.at("transfer");
  t.from = line.at("from");
  t.to = line.at("to");
  t.type = line.at("type");
  t.bytes = line.at("bytes");
  t.sent = ns(line.at("sent_ns"));
  t.begun = ns(line.at("begun_ns"));
  t.left = ns(line.at("left_ns"));
  t.arrives = ns(line.at("arrives_ns"));
  t.round_trip = ns(line.at("round_trip_ns"));
  t.cut = line.at("cut");
  for (const auto& step : line.at("steps")) {
    explained_step s{ns(step.at(0)), step.at(1), step.at(2), "", 0};
    if (step.size() > 4) {
      s.link = step.at(3);
      s.sharers = step.at(4);
    }
    t.steps.push_back(std::move(s));
  }
  return t;
}

std::string in_words(const explained_step& step) {
  return step.why == "link" ? step.link : limit_in_words(step.why);
}

void add(std::vector<time_share>& shares, const std::string& why, duration time) {
  if (time <= duration{}) return;
  for (auto& share : shares)
    if (share.why == why) {
      share.time += time;
      return;
    }
  shares.push_back({why, time});
}

void longest_first(std::vector<time_share>& shares) {
  std::stable_sort(shares.begin(), shares.end(),
                   [](const time_share& a, const time_share& b) { return a.time > b.time; });
}

duration end_of_step(const explained_transfer& t, std::size_t i) {
  return i + 1 < t.steps.size() ? std::min(t.steps[i + 1].at, t.left) : t.left;
}

void add_shares(std::vector<time_share>& shares, const explained_transfer& t) {
  add(shares, "waiting behind earlier messages of its connection", t.begun - t.sent);
  for (std::size_t i = 0; i < t.steps.size(); ++i)
    add(shares, in_words(t.steps[i]), end_of_step(t, i) - std::max(t.steps[i].at, t.begun));
  if (!t.cut) add(shares, "delay of the path", t.arrives - t.left);
}

/// Whether the transfer used the link of this name. It did if the link belongs to one of its ends,
/// or if the link was recorded as its limit.
bool uses(const explained_transfer& t, const std::string& link) {
  const auto from = machine_of(t.from), to = machine_of(t.to);
  if (link == "uplink of " + from || link == "downlink of " + to ||
      link == "processor of " + from || link == "processor of " + to)
    return true;
  return std::any_of(t.steps.begin(), t.steps.end(),
                     [&](const explained_step& s) { return s.link == link; });
}

std::string mean_rate(const explained_transfer& t) {
  const double seconds = to_seconds(t.left - t.begun);
  if (seconds <= 0) return "at once";
  return fmt::format("{:.3g} Mbit", static_cast<double>(t.bytes) * 8e-6 / seconds);
}

std::string milliseconds(duration time) {
  return fmt::format("{:.1f} ms", to_seconds(time) * 1e3);
}

std::string shares_text(const std::vector<time_share>& shares) {
  duration all{};
  for (const auto& share : shares) all += share.time;
  std::string out;
  for (const auto& share : shares)
    out += fmt::format("  {:5.1f} %  {:>10}  {}\n",
                       100 * to_seconds(share.time) / std::max(1e-12, to_seconds(all)),
                       milliseconds(share.time), share.why);
  return out;
}

std::string one_line(const explained_transfer& t) {
  return fmt::format("{:>7}  {:<14} {:>9} B  {} -> {}", t.number, t.type, t.bytes, t.from, t.to);
}

json shares_json(const std::vector<time_share>& shares) {
  json out = json::array();
  for (const auto& share : shares)
    out.push_back({{"why", share.why}, {"seconds", to_seconds(share.time)}});
  return out;
}

json transfer_json(const explained_transfer& t) {
  json steps = json::array();
  for (const auto& s : t.steps) {
    json step{
        {"at_seconds", to_seconds(s.at)}, {"bits_per_second", s.bits_per_second}, {"why", s.why}};
    if (!s.link.empty()) {
      step["link"] = s.link;
      step["sharers"] = s.sharers;
    }
    steps.push_back(std::move(step));
  }
  return {{"transfer", t.number},
          {"from", t.from},
          {"to", t.to},
          {"type", t.type},
          {"bytes", t.bytes},
          {"sent_seconds", to_seconds(t.sent)},
          {"begun_seconds", to_seconds(t.begun)},
          {"left_seconds", to_seconds(t.left)},
          {"arrives_seconds", to_seconds(t.arrives)},
          {"round_trip_seconds", to_seconds(t.round_trip)},
          {"cut", t.cut},
          {"steps", std::move(steps)}};
}

} // namespace

result<void> read_transfers(const std::filesystem::path& run,
                            const std::function<void(explained_transfer)>& each) {
  std::error_code failed;
  if (!std::filesystem::exists(run, failed))
    return failure{fmt::format("no such directory: '{}'", run.string())};
  if (!whole_or_partial(run, transfers_file))
    return failure{fmt::format("'{}' has no {}: run the scenario with record.transfers above 0",
                               run.string(), transfers_file)};
  // A run that goes on, or was killed, has a partial file.
  const auto read = read_json_lines(run, transfers_file, {},
                                    [&](const nlohmann::json& line) { each(parse(line)); });
  if (!read) return failure{read.error()};
  return {};
}

result<explanation> explain_transfer(const std::filesystem::path& run, std::uint64_t number) {
  std::optional<explained_transfer> found;
  std::uint64_t highest = 0;
  auto read = read_transfers(run, [&](explained_transfer t) {
    highest = std::max(highest, t.number);
    if (t.number == number) found = std::move(t);
  });
  if (!read) return failure{read.error()};
  if (!found)
    return failure{
        highest == 0
            ? fmt::format("'{}' has no transfers", run.string())
            : fmt::format("no transfer {} in '{}': they are numbered 1 to {}; --round N lists "
                          "those of a round",
                          number, run.string(), highest)};
  explanation out;
  out.transfer = std::move(*found);
  add_shares(out.shares, out.transfer);
  longest_first(out.shares);
  std::string held_by;
  for (const auto& share : out.shares)
    if (held_by.empty() && uses(out.transfer, share.why)) held_by = share.why;
  if (!held_by.empty()) {
    auto again = read_transfers(run, [&](explained_transfer t) {
      if (t.number != number && t.begun < out.transfer.left && t.left > out.transfer.begun &&
          uses(t, held_by))
        out.others.push_back(std::move(t));
    });
    if (!again) return failure{again.error()};
  }
  return out;
}

std::string to_text(const explanation& what) {
  const auto& t = what.transfer;
  std::string out = fmt::format("transfer {}: {} of {} bytes, {} -> {}\n", t.number, t.type,
                                t.bytes, t.from, t.to);
  out += fmt::format("  sent     {:>12.6f} s\n", to_seconds(t.sent));
  out += fmt::format("  begun    {:>12.6f} s  after {}\n", to_seconds(t.begun),
                     milliseconds(t.begun - t.sent));
  out +=
      fmt::format("  {} {:>12.6f} s  after {} more, {} on average\n", t.cut ? "cut off" : "left   ",
                  to_seconds(t.left), milliseconds(t.left - t.begun), mean_rate(t));
  if (!t.cut)
    out += fmt::format("  arrives  {:>12.6f} s  after {} more (round trip {})\n",
                       to_seconds(t.arrives), milliseconds(t.arrives - t.left),
                       milliseconds(t.round_trip));
  out += "\nits rate, and what limited it\n";
  constexpr std::size_t most = 40;
  for (std::size_t i = 0; i < t.steps.size(); ++i) {
    if (i == most) {
      out += fmt::format("  ... and {} changes more; --json has all\n", t.steps.size() - most);
      break;
    }
    const auto& s = t.steps[i];
    out += fmt::format("  {:>12.6f} s  for {:>10}  {:>9.4g} Mbit  {}{}\n", to_seconds(s.at),
                       milliseconds(end_of_step(t, i) - s.at), s.bits_per_second * 1e-6,
                       in_words(s), s.sharers > 1 ? fmt::format(", shared by {}", s.sharers) : "");
  }
  out += "\nwhere the time went\n" + shares_text(what.shares);
  if (!what.others.empty()) {
    out += fmt::format("\nat the same time on the same link: {} other{}\n", what.others.size(),
                       what.others.size() == 1 ? "" : "s");
    for (std::size_t i = 0; i < std::min<std::size_t>(what.others.size(), 15); ++i)
      out += one_line(what.others[i]) + "\n";
    if (what.others.size() > 15) out += "  ...\n";
  }
  return out;
}

std::string to_json(const explanation& what) {
  json out = transfer_json(what.transfer);
  out["where_the_time_went"] = shares_json(what.shares);
  out["others"] = json::array();
  for (const auto& other : what.others) out["others"].push_back(other.number);
  return json_text(out, 2) + "\n";
}

result<std::vector<round_explanation>> explain_round(const std::filesystem::path& run,
                                                     std::uint64_t epoch) {
  std::vector<round_explanation> rounds;
  std::map<std::string, std::size_t> index;
  std::optional<std::uint64_t> highest;
  const auto events = read_events(run, {"round_ended"}, [&](const nlohmann::json& line) {
    highest = std::max(highest.value_or(0), line.at("epoch").get<std::uint64_t>());
    if (line.at("epoch") != epoch) return;
    const std::string group = line.at("group");
    const auto [at, fresh] = index.emplace(group, rounds.size());
    if (fresh) {
      rounds.push_back({});
      rounds.back().epoch = epoch;
      rounds.back().group = group;
      rounds.back().outcome = line.at("outcome");
      rounds.back().reason = line.at("reason");
      rounds.back().started = ns(line.at("started_ns"));
    }
    auto& round = rounds[at->second];
    round.started = std::min(round.started, ns(line.at("started_ns")));
    round.ended = std::max(round.ended, ns(line.at("time_ns")));
    round.members.push_back(line.at("host"));
  });
  if (!events) return failure{events.error()};
  if (rounds.empty())
    return failure{highest
                       ? fmt::format("no round of epoch {} in '{}': they go up to {}", epoch,
                                     run.string(), *highest)
                       : fmt::format("'{}' has no rounds (with record.events: none it cannot have)",
                                     run.string())};
  auto read = read_transfers(run, [&](explained_transfer t) {
    for (auto& round : rounds) {
      const std::set<std::string> members(round.members.begin(), round.members.end());
      if (t.begun < round.started || t.begun > round.ended ||
          !members.contains(machine_of(t.from)) || !members.contains(machine_of(t.to)))
        continue;
      ++round.transfers;
      round.bytes += t.bytes;
      add_shares(round.shares, t);
      round.all.push_back(std::move(t));
      break;
    }
  });
  if (!read) return failure{read.error()};
  const auto from = load((run / "run.yaml").string());
  const auto hosts = from.value ? expand_hosts(*from.value) : std::vector<host_spec>{};
  for (auto& round : rounds) {
    round.bound = bandwidth_bound(hosts, round.members, round.bytes);
    longest_first(round.shares);
    round.last = round.all;
    std::stable_sort(round.last.begin(), round.last.end(),
                     [](const auto& a, const auto& b) { return a.arrives > b.arrives; });
    round.last.resize(std::min<std::size_t>(round.last.size(), 5));
  }
  return rounds;
}

std::string to_text(const std::vector<round_explanation>& rounds) {
  std::string out;
  for (const auto& round : rounds) {
    if (!out.empty()) out += "\n";
    out += fmt::format("round of epoch {} (group {}): {}{}, {} members, {:.3f} s to {:.3f} s\n",
                       round.epoch, round.group.substr(0, 8), round.outcome,
                       round.reason == "none" ? "" : " (" + round.reason + ")",
                       round.members.size(), to_seconds(round.started), to_seconds(round.ended));
    out += fmt::format("  {} transfers of bulk, {:.3f} MB\n", round.transfers,
                       static_cast<double>(round.bytes) * 1e-6);
    if (round.transfers == 0) continue;
    const auto took = round.ended - round.started;
    if (round.bound && *round.bound > duration{})
      out += fmt::format("  took {}, {:.2f} times the {} that the rates of its lines allow\n",
                         milliseconds(took), to_seconds(took) / to_seconds(*round.bound),
                         milliseconds(*round.bound));
    out += "\nwhere their time went, all together\n";
    constexpr std::size_t most = 12;
    std::vector<time_share> shown(round.shares.begin(),
                                  round.shares.begin() +
                                      static_cast<long>(std::min(most, round.shares.size())));
    out += shares_text(shown);
    out += "\nthe last to arrive; --flow N explains one\n";
    for (const auto& t : round.last) {
      std::vector<time_share> shares;
      add_shares(shares, t);
      longest_first(shares);
      out += fmt::format("{}  at {:.3f} s, took {}, most of it: {}\n", one_line(t),
                         to_seconds(t.arrives), milliseconds(t.arrives - t.sent),
                         shares.empty() ? "-" : shares.front().why);
    }
  }
  return out;
}

std::string to_json(const std::vector<round_explanation>& rounds) {
  json out = json::array();
  for (const auto& round : rounds) {
    json last = json::array();
    for (const auto& t : round.last) last.push_back(transfer_json(t));
    out.push_back({{"epoch", round.epoch},
                   {"group", round.group},
                   {"outcome", round.outcome},
                   {"reason", round.reason},
                   {"started_seconds", to_seconds(round.started)},
                   {"ended_seconds", to_seconds(round.ended)},
                   {"members", round.members},
                   {"transfers", round.transfers},
                   {"bytes", round.bytes},
                   {"bound_seconds", round.bound ? json(to_seconds(*round.bound)) : json()},
                   {"where_the_time_went", shares_json(round.shares)},
                   {"last", std::move(last)}});
  }
  return json_text(out, 2) + "\n";
}

} // namespace shoal::scenarios
