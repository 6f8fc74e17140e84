#include "scenarios/schema/check_scenario.hpp"

#include "actors/dht/record_rules.hpp"
#include "actors/experts/probes.hpp"
#include "actors/pipeline/probes.hpp"
#include "actors/probes.hpp"
#include "actors/training/progress.hpp"
#include "kernels/base/text_fields.hpp"
#include "kernels/mixing.hpp"
#include "scenarios/methods/method.hpp"
#include "scenarios/observe/summary.hpp"
#include "scenarios/programs/program.hpp"
#include "scenarios/roles/role.hpp"
#include "scenarios/schema/check_churn.hpp"
#include "scenarios/schema/check_faults.hpp"
#include "scenarios/schema/check_robustness.hpp"
#include "scenarios/schema/checking.hpp"
#include "scenarios/schema/devices.hpp"
#include "scenarios/schema/guess.hpp"
#include "scenarios/schema/hosts.hpp"
#include "scenarios/schema/lines.hpp"
#include "scenarios/schema/security.hpp"
#include "scenarios/schema/start_from.hpp"
#include "scenarios/workloads/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

namespace shoal::scenarios {
namespace {

constexpr double longest_seconds = 3e9; // nanoseconds in 64 bits reach 9.2e9 s

class checker : checking {
public:
  checker(const scenario& what, const source_map& sources, const std::string& folder,
          std::vector<problem>& problems)
      : checking(sources, problems, folder), s_(what) {}

  void run() {
    times();
    network();
    peers();
    places();
    names();
    workload();
    roles();
    training();
    record();
    compression();
    swarm();
    check_faults(s_, sources_, problems_);
    check_churn(s_, sources_, folder(), problems_);
    check_security(s_, sources_, problems_);
    check_robustness(s_, sources_, problems_);
    check_over_time(s_, sources_, folder(), problems_);
    expectations();
    // A misspelt device name is an error; skip the warning about the unused device then.
    if (std::all_of(problems_.begin(), problems_.end(),
                    [](const problem& what) { return what.warning; }))
      devices();
  }

private:
  void times() {
    if (sound({"stop_time"}) && to_seconds(s_.stop_time) > longest_seconds)
      error("stop_time", fmt::format("stop_time: has to be at most {:.0f}s", longest_seconds));
  }

  void region(const std::string& path, const std::string& name) {
    if (!sound({path, "network.regions"})) return;
    if (std::find(s_.network.regions.begin(), s_.network.regions.end(), name) ==
        s_.network.regions.end())
      error(path, fmt::format("unknown region '{}'", name), guess(name, s_.network.regions));
  }

  void network() {
    const network_options& n = s_.network;
    if (sound({"network.regions"}) && n.regions.empty())
      error("network.regions", "network.regions: at least one region is needed");
    for (std::size_t i = 0; i < n.regions.size(); ++i) {
      const std::string path = fmt::format("network.regions.{}", i);
      if (!sound({path})) continue;
      if (n.regions[i].empty())
        error(path, "a region needs a name");
      else if (std::find(n.regions.begin(), n.regions.begin() + static_cast<long>(i),
                         n.regions[i]) != n.regions.begin() + static_cast<long>(i))
        error(path, fmt::format("region '{}' is named twice", n.regions[i]));
    }
    if (sound({"network.default_delay", "network.default_jitter"}) &&
        n.default_jitter > n.default_delay)
      error("network.default_jitter",
            fmt::format("the jitter {} is larger than the delay {}", to_string(n.default_jitter),
                        to_string(n.default_delay)));
    std::map<std::pair<std::string, std::string>, std::size_t> seen;
    for (std::size_t i = 0; i < n.links.size(); ++i) {
      const std::string path = fmt::format("network.links.{}", i);
      const region_link& link = n.links[i];
      if (!sound({path, path + ".from", path + ".to"})) continue;
      region(path + ".from", link.from);
      region(path + ".to", link.to);
      quality(link.path, path);
      const auto [first, fresh] = seen.emplace(std::minmax(link.from, link.to), i);
      if (!fresh)
        error(path, fmt::format(
                        "the link between '{}' and '{}' is given twice, first as network.links.{}",
                        link.from, link.to, first->second));
    }
    std::map<std::string, std::string> shared; // key: region
    for (const auto& [name, link] : n.shared_links) {
      const std::string path = "network.shared_links." + name;
      if (!sound({path})) continue;
      region(path + ".region", link.region);
      const auto [first, fresh] = shared.emplace(link.region, name);
      if (!fresh)
        error_at_key(path, fmt::format("the region '{}' already has the shared link '{}'",
                                       link.region, first->second));
    }
    for (const auto& [name, relay] : n.relays) {
      const std::string path = "network.relays." + name;
      if (!sound({path})) continue;
      if (!is_plain_name(name))
        error_at_key(path,
                     fmt::format("'{}' cannot name a relay: use a-z, 0-9, '_' and '-'", name));
      region(path + ".region", relay.region);
    }
    if (sound({"network.relays", "peers"}) && !n.relays.empty() &&
        std::all_of(s_.peers.begin(), s_.peers.end(), [this](const peer_group& g) {
          return g.nat == netem::nat_class::open && sound({"peers." + g.name + ".nat"});
        }))
      warn("network.relays", "all peers are open: nobody needs a relay",
           {"say so with 'nat' in a group of 'peers'"});
    delays();
  }

  /// Reports delays that exceed the timeouts.
  void delays() {
    const network_options& n = s_.network;
    const auto judge = [&](const std::string& path, duration delay) {
      if (!sound({path, "averaging.round_timeout", "averaging.sender_timeout",
                  "averaging.matchmaking_time"}))
        return;
      const averaging_options& a = s_.averaging;
      if (2 * delay >= a.round_timeout)
        error(path,
              fmt::format(
                  "a round trip of {} is longer than averaging.round_timeout {}: no round can end",
                  to_string(2 * delay), to_string(a.round_timeout)));
      else if (2 * delay >= std::min(a.sender_timeout, a.matchmaking_time))
        warn(
            path,
            fmt::format(
                "a round trip of {} is longer than averaging.{}: these hosts will miss most rounds",
                to_string(2 * delay),
                a.sender_timeout <= a.matchmaking_time
                    ? "sender_timeout " + to_string(a.sender_timeout)
                    : "matchmaking_time " + to_string(a.matchmaking_time)));
    };
    judge("network.default_delay", n.default_delay);
    for (std::size_t i = 0; i < n.links.size(); ++i)
      judge(fmt::format("network.links.{}.delay", i), n.links[i].path.delay);
    for (const peer_group& group : s_.peers)
      judge("peers." + group.name + ".delay", group.access.delay);
    matchmaking();
  }

  /// Reports a matchmaking time that is too short for the sum of delays between the farthest hosts.
  void matchmaking() {
    if (!sound({"averaging.matchmaking_time", "network", "peers"})) return;
    // A host reads the list of ready hosts, joins, and hears that the group begins.
    constexpr int round_trips = 3;
    const network_options& n = s_.network;
    duration between = n.regions.size() > 1 || n.links.empty() ? n.default_delay : duration{},
             first{}, second{};
    for (const auto& link : n.links) between = std::max(between, link.path.delay);
    for (const peer_group& group : s_.peers)
      for (std::uint64_t i = 0; i < std::min<std::uint64_t>(group.count, 2); ++i) {
        second = std::max(second, std::min(first, group.access.delay));
        first = std::max(first, group.access.delay);
      }
    const auto longest = 2 * (between + first + second);
    if (s_.averaging.matchmaking_time < round_trips * longest &&
        longest < s_.averaging.matchmaking_time)
      warn("averaging.matchmaking_time",
           fmt::format("a group needs about {} round trips to form, but the farthest hosts have "
                       "round trips of {}, too long for {}. They miss rounds until they adapt: "
                       "raise averaging.matchmaking_time",
                       round_trips, to_string(longest), to_string(s_.averaging.matchmaking_time)));
  }

  void devices() {
    for (const auto& [name, device] : s_.devices) {
      const bool used =
          std::any_of(s_.peers.begin(), s_.peers.end(),
                      [&name = name](const peer_group& group) { return group.device == name; });
      if (used || !sound({"peers"})) continue;
      warn("devices." + name, fmt::format("no peer uses the device '{}'", name),
           meant_notes(name, others(name)));
    }
  }

  /// Names of all devices except `but`.
  std::vector<std::string> others(const std::string& but) const {
    std::vector<std::string> out;
    for (const auto& [name, device] : s_.devices)
      if (name != but) out.push_back(name);
    return out;
  }

  void peers() {
    std::vector<std::string> known;
    for (const auto& [name, device] : s_.devices) known.push_back(name);
    for (const peer_group& group : s_.peers) {
      const std::string path = "peers." + group.name;
      if (!is_plain_name(group.name))
        error_at_key(
            path, fmt::format("'{}' cannot name a group: use a-z, 0-9, '_' and '-'", group.name));
      region(path + ".region", group.region);
      if (group.line.empty())
        for (const char* key : {"up", "down"})
          if (sound({path, path + "." + key, path + ".line"}) && !sources_.given(path + "." + key))
            error_at_key(path, fmt::format("missing key '{}' in {}: give it, or a 'line' ({})", key,
                                           path, line_names));
      quality(group.access, path);
      if (sound({path, path + ".device", "devices"}) && !s_.devices.contains(group.device)) {
        auto notes = guess(group.device, known);
        if (s_.program.reads("workload"))
          notes.push_back(fmt::format("without an entry of 'devices': {}", device_names));
        error(path + ".device", fmt::format("unknown device '{}'", group.device), notes);
      }
      starts(group, path);
      if (group.absent && churns(group.churn) && sound({path, path + ".absent", path + ".churn"}))
        error_at_key(path + ".absent", "'absent' and 'churn' both say when the hosts start");
      if (group.absent && sound({path, "faults"}) && !joins(group))
        warn(path + ".absent",
             fmt::format("no 'join' fault selects a host of '{}': it never starts", group.name));
    }
  }

  /// Checks the names of hosts that replace '<group>-0' and so on.
  void names() {
    if (s_.data.names.empty() && std::all_of(s_.peers.begin(), s_.peers.end(),
                                             [](const peer_group& g) { return g.names.empty(); }))
      return;
    std::map<std::string, std::string> whose;
    // '<of>-3' is the name of a host without a name of its own.
    const auto numbered = [](const std::string& name, std::string_view of, std::uint64_t from,
                             std::uint64_t count) {
      if (!name.starts_with(of)) return false;
      const auto number = std::string_view(name).substr(of.size());
      const auto index = number_of<std::uint64_t>(number);
      return index && std::to_string(*index) == number && *index >= from && *index < count;
    };
    const auto by_number = [&](const std::string& name) -> std::string {
      for (const peer_group& group : s_.peers)
        if (numbered(name, group.name + "-", group.names.size(), group.count))
          return "peers." + group.name;
      return numbered(name, shard_prefix, s_.data.names.size(), s_.data.replicas) ? "data" : "";
    };
    const auto check = [&](const std::vector<std::string>& given, const std::string& path,
                           const char* of, std::uint64_t count) {
      if (given.empty() || !sound({path + ".names", path + "." + of})) return;
      if (given.size() > count)
        error_at_key(path + ".names",
                     fmt::format("{} names, and {} is {}", given.size(), of, count));
      for (std::size_t i = 0; i < given.size(); ++i) {
        const auto at = fmt::format("{}.names.{}", path, i);
        if (!is_plain_name(given[i]))
          error(at, fmt::format("'{}' cannot name a host: use a-z, 0-9, '_' and '-'", given[i]));
        else if (const auto [other, fresh] = whose.emplace(given[i], path); !fresh)
          error(at, fmt::format("a host of {} has the name '{}', too", other->second, given[i]));
        else if (const auto another = by_number(given[i]); !another.empty())
          error(at, fmt::format("a host of {} has the name '{}', too", another, given[i]));
      }
    };
    for (const peer_group& group : s_.peers)
      check(group.names, "peers." + group.name, "count", group.count);
    check(s_.data.names, "data", "replicas", s_.data.replicas);
  }

  void starts(const peer_group& group, const std::string& path) {
    if (!sound({path, path + ".count", path + ".start", path + ".start_spacing", "stop_time"}) ||
        group.count == 0)
      return;
    const double last = to_seconds(group.start) +
                        static_cast<double>(group.count - 1) * to_seconds(group.start_spacing);
    const std::string culprit =
        path + (sources_.given(path + ".start_spacing") ? ".start_spacing" : ".start");
    if (last > longest_seconds)
      error(culprit, fmt::format("the last host of '{}' would start at {:.3g}s", group.name, last));
    else if (!group.absent && last >= to_seconds(s_.stop_time))
      warn(culprit, fmt::format("the last host of '{}' would start at {:.6g}s, after stop_time",
                                group.name, last));
  }

  bool joins(const peer_group& group) const {
    return std::any_of(s_.faults.begin(), s_.faults.end(), [&](const fault& f) {
      return f.kind == fault_kind::join && (f.select.empty() || selects(f.select, group));
    });
  }

  void places() {
    region("data.region", s_.data.region);
    for (std::size_t i = 0; i < s_.data.replica_regions.size(); ++i)
      region(fmt::format("data.replica_regions.{}", i), s_.data.replica_regions[i]);
    if (sound({"data.replicas", "data.replica_regions"}) &&
        s_.data.replica_regions.size() >= s_.data.replicas)
      error_at_key("data.replica_regions",
                   fmt::format("{} regions for {} further replica{}",
                               s_.data.replica_regions.size(), s_.data.replicas - 1,
                               s_.data.replicas == 2 ? "" : "s"));
  }

  void workload() {
    const auto& of = s_.workload.definition();
    if (sound({"workload.kind"}) && of.check) of.check(s_, *this);
  }

  /// Checks each group's role, and that at least one group trains.
  void roles() {
    bool trainers = s_.peers.empty();
    for (const peer_group& group : s_.peers) {
      if (!sound({"peers." + group.name + ".role"})) return;
      const auto& role = group.role.definition();
      trainers = trainers || role.trains;
      if (role.check) role.check(s_, group, *this);
    }
    if (!trainers)
      error("peers", "no group of peers has a role that trains: nobody learns anything");
  }

  void record() {
    const record_options& r = s_.record;
    if (!sound_inside({"record.export"})) return;
    for (std::size_t i = 0; i < r.exports.size(); ++i)
      if (std::find(r.exports.begin(), r.exports.begin() + static_cast<std::ptrdiff_t>(i),
                    r.exports[i]) != r.exports.begin() + static_cast<std::ptrdiff_t>(i))
        error(fmt::format("record.export.{}", i), "this format is in the list already");
    if (r.export_every > duration::zero() && r.exports.empty())
      error("record.export_every", "nothing is exported: record.export names no format",
            {"write record.export: [perfetto], for instance"});
    if (r.exports.empty() || !sound({"record.events", "record.transfers"})) return;
    const auto has = [&](export_kind kind) {
      return std::find(r.exports.begin(), r.exports.end(), kind) != r.exports.end();
    };
    if (r.events == event_detail::none && (has(export_kind::perfetto) || has(export_kind::csv)))
      warn("record.export", "without record.events the exports have no rounds and no phases");
    if (r.transfers == 0 && r.events != event_detail::all && has(export_kind::pcapng))
      warn("record.export",
           "pcapng has no packets: record.transfers is 0, and record.events is not 'all'");
  }

  void training() {
    const training_options& t = s_.training;
    const auto& of = t.method.definition();
    if (sound({"training.method"}) && of.check) of.check(s_, *this);
    if (sound({"training.method"})) grid();
    if (sound({"training.min_refresh", "training.max_refresh"}) && t.min_refresh > t.max_refresh)
      error(sources_.given("training.min_refresh") ? "training.min_refresh"
                                                   : "training.max_refresh",
            fmt::format("min_refresh {} is longer than max_refresh {}", to_string(t.min_refresh),
                        to_string(t.max_refresh)));
    if (sound({"training.record_lifetime", "training.max_refresh"}) &&
        t.record_lifetime <= t.max_refresh)
      warn(sources_.given("training.record_lifetime") ? "training.record_lifetime"
                                                      : "training.max_refresh",
           fmt::format(
               "records expire after {}, but are renewed only every {}: live peers will seem gone",
               to_string(t.record_lifetime), to_string(t.max_refresh)));
    if (sound({"data.lease_time", "training.max_refresh"}) && s_.data.lease_time <= t.max_refresh)
      warn(sources_.given("data.lease_time") ? "data.lease_time" : "training.max_refresh",
           fmt::format("leases of samples end after {}, but some peers renew them only every {}: "
                       "other peers will have the samples again",
                       to_string(s_.data.lease_time), to_string(t.max_refresh)));
    const auto longest = actors::rule_of(actors::progress_key).max_lifetime;
    if (sound({"training.record_lifetime"}) && t.record_lifetime > longest)
      warn("training.record_lifetime",
           fmt::format("no progress record lives longer than {}: {} has the same effect",
                       to_string(longest), to_string(t.record_lifetime)));
    if (const auto most = s_.averaging.max_norm_ratio;
        sound({"averaging.max_norm_ratio"}) && most > 0 && most <= 1)
      error("averaging.max_norm_ratio",
            fmt::format("a limit of {} times the median norm refuses honest members: say a number "
                        "above 1, or 0 for no limit",
                        most));
    checkpoints();
    const kernels::optimizer_config& o = t.optimizer;
    if (sound({"training.optimizer.warmup_steps", "training.optimizer.total_steps"}) &&
        o.decay_steps > 0 && o.warmup_steps >= o.decay_steps)
      error(sources_.given("training.optimizer.warmup_steps") ? "training.optimizer.warmup_steps"
                                                              : "training.optimizer.total_steps",
            fmt::format("warmup_steps {} leaves nothing of total_steps {}", o.warmup_steps,
                        o.decay_steps));
  }

  /// Checks the codecs of messages and the rank of PowerSGD.
  void compression() {
    const averaging_options& a = s_.averaging;
    const bool parameters = traits_of(s_).averages_parameters;
    const auto& method = s_.training.method.name();
    if (!sound({"training.method", "averaging.compression", "averaging.means_compression",
                "averaging.power_sgd_rank"}))
      return;
    std::string others;
    for (const auto& [codec, name] : names_of(kernels::codec{}))
      if (codec != kernels::codec::top_k)
        others += (others.empty() ? "" : ", ") + std::string(name);
    const bool top_k = a.compression == kernels::codec::top_k;
    if (a.means_compression == kernels::codec::top_k)
      error("averaging.means_compression",
            fmt::format("top_k cannot write the means that reducers send back: nobody keeps what "
                        "it drops of them; means take {}",
                        others));
    if (top_k && parameters)
      error("averaging.compression",
            fmt::format("top_k cannot write parameters, which the method '{}' averages: dropped "
                        "parameters would be 0; they take {}",
                        method, others));
    if (a.power_sgd_rank > 0 && parameters)
      error("averaging.power_sgd_rank",
            fmt::format("PowerSGD is for gradients; the method '{}' averages parameters", method));
    else if (top_k && a.power_sgd_rank > 0)
      error("averaging.compression",
            fmt::format("top_k cannot write what PowerSGD averages: both drop values of gradients; "
                        "with it contributions take {}",
                        others));
    if (sources_.given("averaging.top_k_fraction") && sound({"averaging.top_k_fraction"}) && !top_k)
      warn("averaging.top_k_fraction",
           "averaging.top_k_fraction is of the codec 'top_k', which averaging.compression is not");
    const auto& of = s_.workload.definition();
    // The workload's own check has reported an invalid model.
    if (a.power_sgd_rank == 0 || parameters || !sound_inside({"workload"}) ||
        !of.possible(s_.workload).ok())
      return;
    if (auto fits = low_rank_of(s_); !fits) {
      std::vector<std::string> notes;
      const auto tensors = of.tensors(s_.workload);
      if (tensors.size() == 1 && tensors.front().shape.size() == 1)
        notes.push_back(fmt::format(
            "the parameters of {} are one vector; workload.rows makes them a matrix", of.name));
      error("averaging.power_sgd_rank", fits.error(), std::move(notes));
    }
  }

  void checkpoints() {
    const training_options& t = s_.training;
    if (t.checkpoint_every > 0 && sound({"training.checkpoint_every", "workload.kind"}) &&
        !s_.workload.definition().has_numbers)
      warn("training.checkpoint_every",
           fmt::format("workload '{}' has no numbers: there will be no checkpoints",
                       s_.workload.name()));
    if (t.start_from.empty() || !sound({"training.start_from"}) ||
        !sound_inside({"workload", "training.optimizer"}))
      return;
    const auto start = load_start(s_, path_from(folder(), t.start_from));
    if (!start)
      error("training.start_from", start.error());
    else if (sound({"training.epochs"}) && t.epochs > 0 && start->epoch >= t.epochs)
      error("training.start_from",
            fmt::format("'{}' is of epoch {}: training.epochs {} leaves nothing to do",
                        t.start_from, start->epoch, t.epochs));
  }

  void grid() {
    if (!sound({"averaging.grid"}) || s_.averaging.grid.empty()) return;
    const bool used = traits_of(s_).uses_grid;
    if (!used)
      error_at_key(
          "averaging.grid",
          fmt::format(
              "averaging.grid is for methods that average in small groups, which '{}' does not",
              s_.training.method.name()));
    const auto grid = kernels::parse_grid(s_.averaging.grid);
    if (!grid) return error("averaging.grid", grid.error());
    std::uint64_t hosts = 0; // hosts without the model do not average
    for (const peer_group& group : s_.peers) {
      if (!sound({"peers." + group.name + ".role"})) return;
      if (group.role.definition().has_model) hosts += group.count;
    }
    const double in_line =
        static_cast<double>(hosts) * grid->side / static_cast<double>(grid->cells());
    if (used && sound({"peers"}) && in_line < 2)
      warn("averaging.grid", fmt::format("the grid {} has {} cells for {} hosts, {:.2g} in a line: "
                                         "most rounds will find nobody to average with",
                                         s_.averaging.grid, grid->cells(), hosts, in_line));
  }

  void swarm() {
    if (!sources_.sound("peers")) return;
    std::uint64_t hosts = 0;
    double rate = 0;
    for (const peer_group& group : s_.peers) {
      const std::string path = "peers." + group.name;
      if (!sound({path, path + ".count", path + ".device"})) return;
      hosts += group.count;
      const auto device = s_.devices.find(group.device);
      if (device == s_.devices.end() || !sound({"devices", "devices." + group.device,
                                                "devices." + group.device + ".samples_per_second"}))
        rate = -1;
      if (rate >= 0) rate += static_cast<double>(group.count) * device->second.samples_per_second;
    }
    if (!sources_.given("peers"))
      return error("peers", "missing key 'peers': a scenario needs at least one host");
    if (hosts == 0) return error("peers", "no peers: the groups of 'peers' have no hosts");
    if (hosts > most_hosts)
      error("peers", fmt::format("{} hosts: at most {} are possible", hosts, most_hosts));

    const averaging_options& a = s_.averaging;
    if (sound({"averaging.min_group_size", "averaging.group_size"})) {
      const std::string culprit = sources_.given("averaging.min_group_size")
                                      ? "averaging.min_group_size"
                                      : "averaging.group_size";
      if (a.min_group_size > hosts)
        error(culprit,
              fmt::format("min_group_size {} can never be reached: the whole swarm has {} hosts",
                          a.min_group_size, hosts));
      else if (a.min_group_size > a.group_size)
        error(culprit, fmt::format("min_group_size {} is above group_size {}", a.min_group_size,
                                   a.group_size));
    }
    const auto traits = traits_of(s_);
    if (traits.whole_swarm && sound({"averaging.group_size", "training.method"}) &&
        a.group_size < hosts && hosts <= most_hosts && a.min_group_size <= a.group_size)
      warn("averaging.group_size", fmt::format("group_size {} is less than the {} peers: those who "
                                               "do not fit in the group fall out of sync",
                                               a.group_size, hosts));
    if (!traits.target_batch || rate < 0 ||
        !sound({"training.target_batch", "training.method", "stop_time"}))
      return;
    const double possible = rate * to_seconds(s_.stop_time);
    if (possible < static_cast<double>(*traits.target_batch))
      error(
          "training.target_batch",
          fmt::format("target_batch {} cannot be filled before stop_time {}", *traits.target_batch,
                      to_string(s_.stop_time)),
          {fmt::format(
              "{} hosts, always on at full rate, make {:.6g} samples/s: {:.6g} samples until then",
              hosts, rate, possible)});
  }

  void expectations() {
    for (const auto& [metric, wanted] : s_.expect) {
      const std::string path = "expect." + metric;
      if (std::find(known_metrics().begin(), known_metrics().end(), metric) ==
          known_metrics().end()) {
        error_at_key(path, fmt::format("unknown metric '{}'", metric),
                     guess(metric, known_metrics()));
        continue;
      }
      if (!sound({path, path + ".min", path + ".max"})) continue;
      const auto inside = sources_.failed.lower_bound(path + ".");
      if (inside != sources_.failed.end() && inside->starts_with(path + "."))
        continue; // an unknown key
      if (!wanted.min && !wanted.max)
        error_at_key(path, fmt::format("{} needs a 'min' or a 'max'", path));
      else if (wanted.min && wanted.max && *wanted.min > *wanted.max)
        error(path + ".min", fmt::format("min {} is above max {}", *wanted.min, *wanted.max));
    }
  }

  const scenario& s_;
};

} // namespace

std::span<const std::string> known_probes() {
  static const auto names = [] {
    std::vector<std::string> out(actors::probes::all.begin(), actors::probes::all.end());
    out.insert(out.end(), actors::pipeline_probes::all.begin(), actors::pipeline_probes::all.end());
    out.insert(out.end(), actors::expert_probes::all.begin(), actors::expert_probes::all.end());
    return out;
  }();
  return names;
}

std::span<const std::string> known_metrics() {
  static const std::vector<std::string> names(judged_metrics.begin(), judged_metrics.end());
  return names;
}

void check_training(const scenario& what, const source_map& sources, const std::string& folder,
                    std::vector<problem>& problems) {
  checker(what, sources, folder, problems).run();
}

void check_scenario(const scenario& what, const source_map& sources, const std::string& folder,
                    std::vector<problem>& problems) {
  const auto& program = what.program.definition();
  // `world` may stand beside any program, because the command line can set it.
  for (const auto& [path, where] : sources.keys)
    if (path.find('.') == std::string::npos && path != "world" && !what.program.reads(path))
      problems.push_back(
          {where, fmt::format("'{}' beside '{}': {}", path, program.name, program.alone), {}});
  program.check(what, sources, folder, problems);
}

std::string path_from(const std::string& folder, const std::string& path) {
  if (path.empty() || path.front() == '/') return path;
  if (path == "~" || path.starts_with("~/"))
    if (const char* home = std::getenv("HOME"); home && *home == '/') return home + path.substr(1);
  return (std::filesystem::path(folder) / path).lexically_normal().string();
}

} // namespace shoal::scenarios
