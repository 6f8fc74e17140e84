#include "scenarios/schema/check_faults.hpp"

#include "scenarios/schema/check_scenario.hpp"
#include "scenarios/schema/checking.hpp"
#include "scenarios/schema/guess.hpp"
#include "scenarios/schema/hosts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace shoal::scenarios {
namespace {

constexpr std::size_t most_faults = 10'000;
constexpr double most_strikes = 1e6;

using enum fault_kind;

/// The actions that accept an option.
struct option_of {
  const char* key;
  std::vector<fault_kind> kinds;
};
const std::vector<option_of>& options_of_kinds() {
  static const std::vector<option_of> all{
      {"downtime", {restart}},
      {"direction", {partition}},
      {"rate", {throttle, fault_kind::netem}},
      {"factor", {throttle}},
      {"delay", {fault_kind::netem}},
      {"jitter", {fault_kind::netem}},
      {"distribution", {fault_kind::netem}},
      {"correlation", {fault_kind::netem}},
      {"loss", {fault_kind::netem}},
      {"bursts", {fault_kind::netem}},
      {"duplicate", {fault_kind::netem}},
      {"reorder", {fault_kind::netem}},
      {"flow_rate", {fault_kind::netem}},
      {"ahead", {clock}},
      {"behind", {clock}},
      {"drift", {clock}},
      {"duration",
       {pause, throttle, fault_kind::netem, partition, blackhole, swizzle_clog, clock}}};
  return all;
}

class fault_checker : checking {
public:
  fault_checker(const scenario& what, const source_map& sources, std::vector<problem>& problems)
      : checking(sources, problems), s_(what) {}

  void run() {
    if (!sound({"faults"})) return;
    if (s_.faults.size() > most_faults)
      return error("faults", fmt::format("{} faults: at most {} are possible", s_.faults.size(),
                                         most_faults));
    for (std::size_t i = 0; i < s_.faults.size(); ++i) {
      const std::string path = fmt::format("faults.{}", i);
      trigger(s_.faults[i], path);
      if (!sound({path + "." + action_path})) continue;
      action(s_.faults[i], path);
      whom(s_.faults[i], path);
    }
    contradictions();
  }

private:
  bool given(const std::string& path, const char* key) const {
    return sources_.given(path + "." + key);
  }

  void trigger(const fault& f, const std::string& path) {
    if (!sound({path, path + ".at", path + ".on", path + ".every", path + ".until"})) return;
    const bool on = given(path, "on");
    if (on && (f.at || f.every))
      error_at_key(path + ".on", fmt::format("both '{}' and 'on': a fault has one of them",
                                             f.at ? "at" : "every"));
    else if (!on && !f.at && !f.every)
      error_at_key(path, "a fault needs 'at' or 'every' (a time), or 'on' (a probe)");
    if (on && std::find(known_probes().begin(), known_probes().end(), f.on) == known_probes().end())
      error(path + ".on", fmt::format("unknown probe '{}'", f.on), guess(f.on, known_probes()));
    if (!on && (f.at || f.every) && given(path, "nth"))
      error_at_key(path + ".nth", "'nth' goes with 'on'");
    if (f.until && !f.every && !on)
      error_at_key(path + ".until", "'until' goes with 'every' or 'on'");
    if (!sound({"stop_time"})) return;
    const auto first = f.at ? f.at : f.every;
    if (first && *first >= s_.stop_time)
      warn(path + (f.at ? ".at" : ".every"),
           fmt::format("{} is not before stop_time: this never happens", to_string(*first)));
    if (first && f.until && *f.until < *first)
      error(path + ".until",
            fmt::format("{} is before the first time, {}", to_string(*f.until), to_string(*first)));
    if (f.every && to_seconds(s_.stop_time) / to_seconds(*f.every) > most_strikes)
      error(path + ".every", fmt::format("{} until stop_time is more than {:.0f} times",
                                         to_string(*f.every), most_strikes));
  }

  void action(const fault& f, const std::string& path) {
    const char* name = name_of(f.kind);
    for (const auto& [key, kinds] : options_of_kinds()) {
      if (!given(path, key) || std::find(kinds.begin(), kinds.end(), f.kind) != kinds.end())
        continue;
      std::vector<std::string> words;
      for (const auto kind : kinds) words.push_back(fmt::format("'{}'", name_of(kind)));
      std::string last = words.back();
      words.pop_back();
      error_at_key(path + "." + key,
                   fmt::format("'{}' goes with {}{}{}", key, fmt::join(words, ", "),
                               words.empty() ? "" : " and ", last));
    }
    const auto needs = [&](bool fine, std::string message) {
      if (!fine) error_at_key(path + "." + name, std::move(message));
    };
    switch (f.kind) {
    case restart:
      if (sound({path + ".downtime"}) && f.downtime <= duration::zero())
        error(path + ".downtime", "a restart needs a 'downtime' above 0s");
      break;
    case throttle:
      if (sound({path + ".rate", path + ".factor"}))
        needs(given(path, "rate") != given(path, "factor"),
              given(path, "rate") ? "both 'rate' and 'factor': a throttle has one of them"
                                  : "a throttle needs a 'rate' or a 'factor'");
      break;
    case fault_kind::netem:
      needs(f.path != path_options{} || f.rate.bits_per_second > 0 || !sound({path}) ||
                inside_failed(path),
            "this netem does nothing: it needs a 'delay', 'loss', 'duplicate', 'reorder', 'rate' "
            "or 'flow_rate'");
      quality(f.path, path);
      break;
    case partition:
      if (f.shape == partition_shape::majorities_ring && f.cut != netem::traffic_direction::both)
        error(path + ".direction", "a ring of majorities has no direction");
      if (f.shape == partition_shape::regions && sound({"network.regions"}))
        needs(s_.network.regions.size() > 1, "there is one region: nothing is cut");
      break;
    case swizzle_clog:
      if (sound({path + ".duration"}))
        needs(f.lasts > duration::zero(), "a swizzle-clog needs a 'duration'");
      break;
    case clock:
      if (f.clock == clock_fault::bump) {
        if (sound({path + ".ahead", path + ".behind"}))
          needs(given(path, "ahead") != given(path, "behind"),
                "a bump of the clock needs either 'ahead' or 'behind'");
        if (given(path, "drift")) error_at_key(path + ".drift", "'drift' goes with 'clock: skew'");
      } else {
        if (sound({path + ".drift"})) needs(f.drift != 0, "a skew of the clock needs a 'drift'");
        for (const char* key : {"ahead", "behind"})
          if (given(path, key))
            error_at_key(path + "." + key, fmt::format("'{}' goes with 'clock: bump'", key));
      }
      break;
    default:
      break;
    }
  }

  bool inside_failed(const std::string& path) const {
    const auto inside = sources_.failed.lower_bound(path + ".");
    return inside != sources_.failed.end() && inside->starts_with(path + ".");
  }

  void whom(const fault& f, const std::string& path) {
    if (!sound({path, path + ".select", path + ".regions", path + ".mode", path + ".value"}))
      return;
    const bool shaped = f.kind == partition && f.shape != partition_shape::selected;
    if (f.select.empty() && f.regions.empty() && !shaped && f.kind != swizzle_clog)
      return error_at_key(path, fmt::format("missing key 'select' in {}", path));
    if (f.kind == partition && f.shape == partition_shape::regions && !f.select.empty())
      error_at_key(path + ".select",
                   "'partition: regions' cuts all hosts off from those of other regions");
    bool known = true;
    for (std::size_t i = 0; i < f.regions.size(); ++i) {
      if (!sound({"network.regions"}) ||
          std::find(s_.network.regions.begin(), s_.network.regions.end(), f.regions[i]) !=
              s_.network.regions.end())
        continue;
      error(fmt::format("{}.regions.{}", path, i), fmt::format("unknown region '{}'", f.regions[i]),
            guess(f.regions[i], s_.network.regions));
      known = false;
    }
    const bool amount = f.mode == fault_mode::fixed || f.mode == fault_mode::fixed_percent ||
                        f.mode == fault_mode::random_max_percent;
    if (amount != given(path, "value"))
      error_at_key(path + (amount ? ".mode" : ".value"),
                   amount ? fmt::format("mode {} needs a 'value'", name_of(f.mode))
                          : fmt::format("mode {} takes no 'value'", name_of(f.mode)));
    else if (f.mode == fault_mode::fixed &&
             !(f.value >= 1 && f.value <= static_cast<double>(most_hosts) &&
               std::trunc(f.value) == f.value))
      error(path + ".value",
            fmt::format("mode fixed needs a whole number of hosts, from 1 to {}", most_hosts));
    else if (amount && f.mode != fault_mode::fixed && (f.value <= 0 || f.value > 1))
      error(path + ".value",
            fmt::format("mode {} needs a percentage above 0%, up to 100%", name_of(f.mode)),
            f.value > 1 ? std::vector<std::string>{fmt::format("write {}%", f.value)}
                        : std::vector<std::string>{});
    if (given(path, "mode") && f.mode != fault_mode::all && given(path, "on"))
      error_at_key(path + ".mode", "with 'on' the host that reaches the probe is struck");
    if (given(path, "mode") && shaped)
      error_at_key(path + ".mode",
                   fmt::format("'partition: {}' chooses the hosts itself", name_of(f.shape)));
    if (given(path, "on") && (shaped || f.kind == swizzle_clog))
      error_at_key(path + ".on",
                   fmt::format("'{}' needs several hosts: give it a time", name_of(f.kind)));
    if (known) selection(f, path);
  }

  void selection(const fault& f, const std::string& path) {
    if (!sound({"peers", "network.regions", "data.replicas"})) return;
    const auto shards = shard_hosts(s_);
    const auto struck = std::count_if(shards.begin(), shards.end(), [&](const std::string& name) {
      return selects_shard(f.select, name);
    });
    if (struck > 0 && !f.regions.empty()) return; // `regions` may exclude the shards
    if (struck > 0) {
      const bool ends = f.kind == kill || f.kind == restart;
      const bool all = static_cast<std::size_t>(struck) == shards.size() &&
                       f.mode == fault_mode::all && f.on.empty();
      if (ends && shards.size() == 1)
        warn(path + ".select",
             "the fault kills the only data shard: the state of its samples is lost, and reported "
             "as doubtful",
             {"data.replicas: 2 has another one take over"});
      else if (ends && all)
        warn(path + ".select",
             "the fault kills all data shards at once: the state of their samples "
             "is lost, and reported as doubtful");
      return;
    }
    std::vector<std::string> names;
    std::uint64_t found = 0;
    for (const peer_group& group : s_.peers) {
      if (!sound({"peers." + group.name + ".count", "peers." + group.name + ".region"})) return;
      const bool here = f.regions.empty() || std::find(f.regions.begin(), f.regions.end(),
                                                       group.region) != f.regions.end();
      if (here && (f.select.empty() || selects(f.select, group))) {
        if (f.select.empty()) found += group.count;
        for (std::uint64_t i = 0;
             !f.select.empty() && i < std::min(group.count, most_hosts) && found < 64; ++i)
          found += glob_match(f.select, host_name(group, i)) ? 1 : 0;
      }
      if (group.count > group.names.size()) names.push_back(group.name + "-*");
      for (std::uint64_t i = 0; i < std::min<std::uint64_t>(group.count, 32); ++i)
        names.push_back(host_name(group, i));
    }
    if (names.empty()) return; // no peers, which another check reports
    names.insert(names.end(), shards.begin(), shards.end());
    if (found == 0) {
      if (f.select.empty()) return error_at_key(path, "no host is in these regions");
      return error(path + ".select",
                   f.regions.empty()
                       ? fmt::format("'{}' selects no host", f.select)
                       : fmt::format("'{}' selects no host in these regions", f.select),
                   f.regions.empty() ? guess(f.select, names) : std::vector<std::string>{});
    }
    const bool quorum = f.kind == partition && (f.shape == partition_shape::minority_third ||
                                                f.shape == partition_shape::majorities_ring);
    if (found < 4 && quorum)
      error_at_key(path + ".partition",
                   fmt::format("'partition: {}' needs at least 4 hosts, {} are selected",
                               name_of(f.shape), found));
    if (f.mode == fault_mode::fixed && f.value > static_cast<double>(found) && found < 64)
      warn(path + ".value",
           fmt::format("only {} host{} selected", found, found == 1 ? " is" : "s are"));
  }

  /// Reports two of kill, restart and join for one host at the same time, because their order is
  /// not defined.
  void contradictions() {
    const auto life = [](const fault& f) {
      return (f.kind == kill || f.kind == restart || f.kind == join) &&
             !(f.select.empty() && f.regions.empty());
    };
    for (std::size_t i = 0; i < s_.faults.size(); ++i) {
      const fault& b = s_.faults[i];
      const std::string path = fmt::format("faults.{}", i);
      if (!life(b) || !b.at || !sound({path}) || inside_failed(path)) continue;
      for (std::size_t j = 0; j < i; ++j) {
        const fault& a = s_.faults[j];
        if (!life(a) || a.at != b.at || a.kind == b.kind || !overlap(a, b)) continue;
        error(path + ".at",
              fmt::format("contradicts faults.{}: '{}' and '{}' of the same host at {}", j,
                          name_of(a.kind), name_of(b.kind), to_string(*b.at)));
        break;
      }
    }
  }

  bool overlap(const fault& a, const fault& b) const {
    const auto all = [](const fault& f) { return f.select.empty() ? std::string("*") : f.select; };
    if (!may_overlap(all(a), all(b))) return false;
    for (const peer_group& group : s_.peers) {
      if (group.names.empty() &&
          !(may_overlap(all(a), group.name + "-*") && may_overlap(all(b), group.name + "-*")))
        continue;
      for (std::uint64_t i = 0; i < std::min(group.count, most_hosts); ++i) {
        const std::string name = host_name(group, i);
        const auto in = [&](const fault& f) {
          return (f.select.empty() || glob_match(f.select, name)) &&
                 (f.regions.empty() ||
                  std::find(f.regions.begin(), f.regions.end(), group.region) != f.regions.end());
        };
        if (in(a) && in(b)) return true;
      }
    }
    if (!sound({"data.replicas"})) return false;
    for (const auto& name : shard_hosts(s_))
      if (selects_shard(a.select, name) && selects_shard(b.select, name)) return true;
    return false;
  }

  const scenario& s_;
};

} // namespace

bool selects(const std::string& pattern, const peer_group& group) {
  if (group.names.empty() && !may_overlap(pattern, group.name + "-*")) return false;
  for (std::uint64_t i = 0; i < std::min(group.count, most_hosts); ++i)
    if (glob_match(pattern, host_name(group, i))) return true;
  return false;
}

void check_faults(const scenario& what, const source_map& sources, std::vector<problem>& problems) {
  fault_checker(what, sources, problems).run();
}

} // namespace shoal::scenarios
