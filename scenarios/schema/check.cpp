#include "scenarios/schema/check.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <map>

#include <fmt/format.h>

#include "netem/trace.hpp"
#include "scenarios/schema/diagnostic.hpp"
#include "scenarios/schema/hosts.hpp"
#include "scenarios/schema/lines.hpp"

namespace shoal::scenarios {
namespace {

constexpr std::uint64_t most_hosts = 4'000'000;
constexpr std::size_t most_faults = 10'000;
constexpr double longest_seconds = 3e9;   // nanoseconds in 64 bits reach 9.2e9 s

/// `word` in quotes and, if it is close to something known, a note that says so.
std::vector<std::string> guess(const std::string& word, std::span<const std::string> all) {
  if (const auto meant = closest(word, all)) return {fmt::format("did you mean '{}'?", *meant)};
  std::vector<std::string> known;
  for (const std::string& name : all)
    if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
  if (known.empty() || known.size() > 12) return {};
  return {fmt::format("known: {}", fmt::join(known, ", "))};
}

/// `path` as seen from here, if it is below.
std::string shown(const std::string& path) {
  std::error_code error;
  const std::string near = std::filesystem::proximate(path, error).string();
  return error || near.empty() || near.starts_with("..") ? path : near;
}

class checker {
 public:
  checker(const scenario& what, const source_map& sources, const std::string& folder, std::vector<problem>& problems)
      : s_(what), sources_(sources), folder_(folder), problems_(problems) {}

  void run() {
    times();
    network();
    peers();
    places();
    workload();
    data();
    training();
    swarm();
    faults();
    traces();
    expectations();
    // A misspelt name is not also an unused one.
    if (std::all_of(problems_.begin(), problems_.end(), [](const problem& what) { return what.warning; })) devices();
  }

 private:
  void error(const std::string& path, std::string message, std::vector<std::string> notes = {}) {
    problems_.push_back({sources_.value_at(path), std::move(message), std::move(notes)});
  }
  void error_at_key(const std::string& path, std::string message, std::vector<std::string> notes = {}) {
    problems_.push_back({sources_.key_at(path), std::move(message), std::move(notes)});
  }
  void warn(const std::string& path, std::string message, std::vector<std::string> notes = {}) {
    problems_.push_back({sources_.value_at(path), std::move(message), std::move(notes), true});
  }
  bool sound(std::initializer_list<std::string> paths) const {
    return std::all_of(paths.begin(), paths.end(), [&](const std::string& path) { return sources_.sound(path); });
  }

  void times() {
    if (sound({"stop_time"}) && to_seconds(s_.stop_time) > longest_seconds)
      error("stop_time", fmt::format("stop_time: has to be at most {:.0f}s", longest_seconds));
  }

  void region(const std::string& path, const std::string& name) {
    if (!sound({path, "network.regions"})) return;
    if (std::find(s_.network.regions.begin(), s_.network.regions.end(), name) == s_.network.regions.end())
      error(path, fmt::format("unknown region '{}'", name), guess(name, s_.network.regions));
  }

  void network() {
    const network_options& n = s_.network;
    if (sound({"network.regions"}) && n.regions.empty())
      error("network.regions", "network.regions: at least one region is needed");
    for (std::size_t i = 0; i < n.regions.size(); ++i) {
      const std::string path = fmt::format("network.regions.{}", i);
      if (!sound({path})) continue;
      if (n.regions[i].empty()) error(path, "a region needs a name");
      else if (std::find(n.regions.begin(), n.regions.begin() + static_cast<long>(i), n.regions[i]) !=
               n.regions.begin() + static_cast<long>(i))
        error(path, fmt::format("region '{}' is named twice", n.regions[i]));
    }
    if (sound({"network.default_delay", "network.default_jitter"}) && n.default_jitter > n.default_delay)
      error("network.default_jitter", fmt::format("the jitter {} is larger than the delay {}",
                                                  to_string(n.default_jitter), to_string(n.default_delay)));
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
        error(path, fmt::format("the link between '{}' and '{}' is given twice, first as network.links.{}", link.from,
                                link.to, first->second));
    }
    std::map<std::string, std::string> shared;   // by region
    for (const auto& [name, link] : n.shared_links) {
      const std::string path = "network.shared_links." + name;
      if (!sound({path})) continue;
      region(path + ".region", link.region);
      const auto [first, fresh] = shared.emplace(link.region, name);
      if (!fresh) error_at_key(path, fmt::format("the region '{}' already has the shared link '{}'", link.region, first->second));
    }
    delays();
  }

  /// What a line or a link does to messages.
  void quality(const path_options& q, const std::string& path) {
    if (sound({path + ".delay", path + ".jitter", path + ".distribution"}) &&
        q.distribution == netem::jitter_shape::uniform && q.jitter > q.delay)
      error(path + ".jitter", fmt::format("the jitter {} is larger than the delay {}", to_string(q.jitter), to_string(q.delay)));
    for (const char* key : {".distribution", ".correlation"})
      if (q.jitter == duration::zero() && sources_.given(path + key) && sound({path + key, path + ".jitter"}))
        error_at_key(path + key, fmt::format("'{}' needs a 'jitter'", key + 1));
    if (q.loss > 0 && sources_.given(path + ".bursts") && sound({path + ".loss", path + ".bursts"}))
      error_at_key(path + ".bursts", "'loss' and 'bursts' both say how packets are lost");
  }

  /// A delay longer than what anybody waits for.
  void delays() {
    const network_options& n = s_.network;
    const auto judge = [&](const std::string& path, duration delay) {
      if (!sound({path, "averaging.round_timeout", "averaging.sender_timeout", "averaging.matchmaking_time"})) return;
      const averaging_options& a = s_.averaging;
      if (2 * delay >= a.round_timeout)
        error(path, fmt::format("a round trip of {} is longer than averaging.round_timeout {}: no round can end",
                                to_string(2 * delay), to_string(a.round_timeout)));
      else if (2 * delay >= std::min(a.sender_timeout, a.matchmaking_time))
        warn(path, fmt::format("a round trip of {} is longer than averaging.{}: these hosts will miss most rounds",
                               to_string(2 * delay), a.sender_timeout <= a.matchmaking_time
                                                         ? "sender_timeout " + to_string(a.sender_timeout)
                                                         : "matchmaking_time " + to_string(a.matchmaking_time)));
    };
    judge("network.default_delay", n.default_delay);
    for (std::size_t i = 0; i < n.links.size(); ++i) judge(fmt::format("network.links.{}.delay", i), n.links[i].path.delay);
    for (const peer_group& group : s_.peers) judge("peers." + group.name + ".delay", group.access.delay);
  }

  void devices() {
    for (const auto& [name, device] : s_.devices) {
      const bool used = std::any_of(s_.peers.begin(), s_.peers.end(),
                                    [&name = name](const peer_group& group) { return group.device == name; });
      if (used || !sound({"peers"})) continue;
      std::vector<std::string> notes;
      if (const auto meant = closest(name, others(name))) notes.push_back(fmt::format("did you mean '{}'?", *meant));
      warn("devices." + name, fmt::format("no peer uses the device '{}'", name), std::move(notes));
    }
  }

  /// The devices but one.
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
      const bool named = !group.name.empty() && std::all_of(group.name.begin(), group.name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
      });
      if (!named)
        error_at_key(path, fmt::format("'{}' cannot name a group: use a-z, 0-9, '_' and '-'", group.name));
      region(path + ".region", group.region);
      if (group.line.empty())
        for (const char* key : {"up", "down"})
          if (sound({path, path + "." + key, path + ".line"}) && !sources_.given(path + "." + key))
            error_at_key(path, fmt::format("missing key '{}' in {}: give it, or a 'line' ({})", key, path, line_names));
      quality(group.access, path);
      if (sound({path, path + ".device", "devices"}) && !s_.devices.contains(group.device))
        error(path + ".device", fmt::format("unknown device '{}'", group.device), guess(group.device, known));
      starts(group, path);
      churn(group.churn, path + ".churn");
      if (group.absent && churns(group.churn) && sound({path, path + ".absent", path + ".churn"}))
        error_at_key(path + ".absent", "'absent' and 'churn' both say when the hosts start");
      if (group.absent && sound({path, "faults"}) && !joins(group))
        warn(path + ".absent", fmt::format("no 'join' fault selects a host of '{}': it never starts", group.name));
    }
  }

  void starts(const peer_group& group, const std::string& path) {
    if (!sound({path, path + ".count", path + ".start", path + ".start_spacing", "stop_time"}) || group.count == 0)
      return;
    const double last =
        to_seconds(group.start) + static_cast<double>(group.count - 1) * to_seconds(group.start_spacing);
    const std::string culprit = path + (sources_.given(path + ".start_spacing") ? ".start_spacing" : ".start");
    if (last > longest_seconds)
      error(culprit, fmt::format("the last host of '{}' would start at {:.3g}s", group.name, last));
    else if (!group.absent && last >= to_seconds(s_.stop_time))
      warn(culprit, fmt::format("the last host of '{}' would start at {:.6g}s, after stop_time", group.name, last));
  }

  bool joins(const peer_group& group) const {
    return std::any_of(s_.faults.begin(), s_.faults.end(), [&](const fault& f) {
      return f.kind == fault_kind::join && selects(f.select, group);
    });
  }

  static bool selects(const std::string& pattern, const peer_group& group) {
    for (std::uint64_t i = 0; i < std::min(group.count, most_hosts); ++i)
      if (glob_match(pattern, group.name + "-" + std::to_string(i))) return true;
    return false;
  }

  void churn(const churn_options& c, const std::string& path) {
    if (!sound({path})) return;
    span(c.session, path + ".session");
    span(c.gap, path + ".gap");
    if (!c.trace.empty()) {
      for (const char* other : {".session", ".gap"})
        if (sources_.given(path + other)) error_at_key(path + other, "a trace already says when hosts come and go");
      std::error_code failed;
      const auto kind = std::filesystem::status(path_from(folder_, c.trace), failed).type();
      if (!std::filesystem::exists(std::filesystem::file_status(kind)))
        error(path + ".trace", fmt::format("no such file: '{}'", c.trace));
      else if (kind != std::filesystem::file_type::regular)
        error(path + ".trace", fmt::format("'{}' is not a file", c.trace));
    } else if (c.session.distribution == distribution_kind::always && sources_.given(path + ".gap") &&
               sound({path + ".session"})) {
      error_at_key(path + ".gap", "a gap needs a 'session' that ends");
    }
    if (!churns(c) && sources_.given(path + ".ending") && sound({path + ".session", path + ".ending"}))
      error_at_key(path + ".ending", "'ending' needs a 'session' that ends, or a 'trace'");
  }

  static bool churns(const churn_options& c) {
    return !c.trace.empty() || c.session.distribution != distribution_kind::always;
  }

  /// Reads each trace once, whichever groups use it.
  void traces() {
    std::map<std::string, std::vector<const peer_group*>> users;   // by file
    std::vector<std::string> order;
    for (const peer_group& group : s_.peers) {
      const std::string path = "peers." + group.name;
      if (!sound({path, path + ".churn", path + ".churn.trace", path + ".count"}) || group.churn.trace.empty()) continue;
      const std::string file = path_from(folder_, group.churn.trace);
      if (!users.contains(file)) order.push_back(file);
      users[file].push_back(&group);
    }
    for (const std::string& file : order) check_trace(file, users.at(file));
  }

  /// The group that has a host of this name, or null.
  const peer_group* group_of(std::string_view host, std::span<const peer_group* const> among) const {
    for (const peer_group* group : among) {
      if (host.size() <= group->name.size() + 1 || !host.starts_with(group->name) || host[group->name.size()] != '-')
        continue;
      const std::string_view digits = host.substr(group->name.size() + 1);
      std::uint64_t index = 0;
      const auto [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
      const bool canonical = digits.size() == 1 || digits.front() != '0';
      if (bad == std::errc{} && end == digits.data() + digits.size() && canonical && index < group->count) return group;
    }
    return nullptr;
  }

  void check_trace(const std::string& file, const std::vector<const peer_group*>& users) {
    const position used = sources_.value_at("peers." + users.front()->name + ".churn.trace");
    std::error_code failed;
    if (!std::filesystem::is_regular_file(file, failed)) return;   // said at its group
    std::ifstream in(file, std::ios::binary);
    if (!in) return problems_.push_back({used, fmt::format("cannot be read: '{}'", users.front()->churn.trace), {}});
    const auto known = [&](std::string_view host) { return group_of(host, users) != nullptr; };
    const netem::trace_result read = netem::read_trace(in, known);
    for (const netem::trace_problem& what : read.problems) {
      problem made{used, what.message, {}, false, shown(file), {}, what.source_line};
      made.there = {-1, static_cast<int>(what.line), static_cast<int>(what.column), static_cast<int>(what.length)};
      if (!what.unknown_peer.empty()) made.notes = about_peer(what.unknown_peer, users);
      problems_.push_back(std::move(made));
    }
    if (!read.problems.empty()) return;
    std::map<const peer_group*, std::uint64_t> named;
    for (const auto& peer : read.value.peers()) ++named[group_of(peer.name, users)];
    for (const peer_group* group : users)
      if (named[group] < group->count)
        warn("peers." + group->name + ".churn.trace",
             fmt::format("{} of the {} hosts of '{}' are not in the trace: they never start",
                         group->count - named[group], group->count, group->name));
  }

  std::vector<std::string> about_peer(const std::string& name, const std::vector<const peer_group*>& users) const {
    std::vector<const peer_group*> all;
    for (const peer_group& group : s_.peers) all.push_back(&group);
    if (const peer_group* other = group_of(name, all))
      return {fmt::format("the group '{}' does not use this trace", other->name)};
    std::vector<std::string> names;
    for (const peer_group* group : users)
      for (std::uint64_t i = 0; i < std::min<std::uint64_t>(group->count, 32); ++i)
        names.push_back(group->name + "-" + std::to_string(i));
    return guess(name, names);
  }

  void span(const lifetime& l, const std::string& path) {
    if (!sound({path, path + ".distribution", path + ".mean", path + ".shape"})) return;
    const char* name = l.distribution == distribution_kind::weibull ? "weibull" : "exponential";
    if (l.distribution == distribution_kind::always) {
      for (const char* other : {".mean", ".shape"})
        if (sources_.given(path + other)) error_at_key(path + other, fmt::format("'{}' needs a 'distribution' other than always", other + 1));
      return;
    }
    if (l.mean <= duration::zero())
      error(path + ".mean", fmt::format("{}: the distribution {} needs a 'mean' above 0s", path, name));
    if (l.distribution == distribution_kind::exponential && sources_.given(path + ".shape"))
      error_at_key(path + ".shape", "only the distribution weibull has a shape");
  }

  void places() {
    region("data.region", s_.data.region);
  }

  void workload() {
    const workload_options& w = s_.workload;
    if (!sound({"workload.kind", "workload.dim", "workload.heads"}) || w.kind != workload_kind::transformer) return;
    const std::string culprit = sources_.given("workload.heads") ? "workload.heads" : "workload.dim";
    if (w.dim % w.heads != 0)
      error(culprit, fmt::format("dim {} cannot be divided among {} heads", w.dim, w.heads));
    else if (w.dim / w.heads % 2 != 0)
      error(culprit, fmt::format("dim {} / heads {} is {}: rotary positions need an even number", w.dim, w.heads,
                                 w.dim / w.heads));
  }

  void data() {
    if (!sound({"workload.kind", "data.files"}) || s_.workload.kind != workload_kind::transformer) return;
    if (s_.data.files.empty()) error("data.files", "data.files: a transformer needs text to learn");
    for (std::size_t i = 0; i < s_.data.files.size(); ++i) {
      const std::string path = fmt::format("data.files.{}", i);
      if (sound({path}) && files_matching(path_from(folder_, s_.data.files[i])).empty())
        error(path, fmt::format("no such file: '{}'", s_.data.files[i]));
    }
  }

  void training() {
    const training_options& t = s_.training;
    if (sound({"training.micro_batch", "training.target_batch"}) && t.micro_batch > t.target_batch)
      error(sources_.given("training.micro_batch") ? "training.micro_batch" : "training.target_batch",
            fmt::format("micro_batch {} is larger than target_batch {}", t.micro_batch, t.target_batch));
    if (sound({"training.min_refresh", "training.max_refresh"}) && t.min_refresh > t.max_refresh)
      error(sources_.given("training.min_refresh") ? "training.min_refresh" : "training.max_refresh",
            fmt::format("min_refresh {} is longer than max_refresh {}", to_string(t.min_refresh),
                        to_string(t.max_refresh)));
    if (sound({"training.record_lifetime", "training.max_refresh"}) && t.record_lifetime <= t.max_refresh)
      warn(sources_.given("training.record_lifetime") ? "training.record_lifetime" : "training.max_refresh",
           fmt::format("records expire after {}, but are renewed only every {}: live peers will seem gone",
                       to_string(t.record_lifetime), to_string(t.max_refresh)));
    const optimizer_options& o = t.optimizer;
    if (sound({"training.optimizer.warmup_steps", "training.optimizer.total_steps"}) && o.total_steps > 0 &&
        o.warmup_steps >= o.total_steps)
      error(sources_.given("training.optimizer.warmup_steps") ? "training.optimizer.warmup_steps"
                                                              : "training.optimizer.total_steps",
            fmt::format("warmup_steps {} leaves nothing of total_steps {}", o.warmup_steps, o.total_steps));
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
    if (!sources_.given("peers")) return error("peers", "missing key 'peers': a scenario needs at least one host");
    if (hosts == 0) return error("peers", "no peers: the groups of 'peers' have no hosts");
    if (hosts > most_hosts) error("peers", fmt::format("{} hosts: at most {} are possible", hosts, most_hosts));

    const averaging_options& a = s_.averaging;
    if (sound({"averaging.min_group_size", "averaging.group_size"})) {
      const std::string culprit =
          sources_.given("averaging.min_group_size") ? "averaging.min_group_size" : "averaging.group_size";
      if (a.min_group_size > hosts)
        error(culprit, fmt::format("min_group_size {} can never be reached: the whole swarm has {} hosts",
                                   a.min_group_size, hosts));
      else if (a.min_group_size > a.group_size)
        error(culprit, fmt::format("min_group_size {} is above group_size {}", a.min_group_size, a.group_size));
    }
    if (sound({"averaging.group_size"}) && a.group_size < hosts && hosts <= most_hosts &&
        a.min_group_size <= a.group_size)
      warn("averaging.group_size",
           fmt::format("group_size {} is less than the {} peers: those who do not fit in the group fall out of sync",
                       a.group_size, hosts));
    if (rate < 0 || !sound({"training.target_batch", "stop_time"})) return;
    const double possible = rate * to_seconds(s_.stop_time);
    if (possible < static_cast<double>(s_.training.target_batch))
      error("training.target_batch",
            fmt::format("target_batch {} cannot be filled before stop_time {}", s_.training.target_batch,
                        to_string(s_.stop_time)),
            {fmt::format("{} hosts, always on at full rate, make {:.6g} samples/s: {:.6g} samples until then", hosts,
                         rate, possible)});
  }

  void faults() {
    if (!sound({"faults"})) return;
    if (s_.faults.size() > most_faults)
      return error("faults", fmt::format("{} faults: at most {} are possible", s_.faults.size(), most_faults));
    for (std::size_t i = 0; i < s_.faults.size(); ++i) strike(s_.faults[i], fmt::format("faults.{}", i));
  }

  void strike(const fault& f, const std::string& path) {
    if (!sound({path, path + ".at", path + ".on"})) return;
    const bool on = sources_.given(path + ".on");
    if (f.at.has_value() == on)
      error_at_key(on ? path + ".on" : path, on ? "both 'at' and 'on': a fault has one of them"
                                                : "a fault needs 'at' (a time) or 'on' (a probe)");
    if (on && std::find(known_probes().begin(), known_probes().end(), f.on) == known_probes().end())
      error(path + ".on", fmt::format("unknown probe '{}'", f.on), guess(f.on, known_probes()));
    if (!on && f.at && sources_.given(path + ".nth")) error_at_key(path + ".nth", "'nth' goes with 'on'");
    if (f.at && sound({"stop_time"}) && *f.at >= s_.stop_time)
      warn(path + ".at", fmt::format("{} is not before stop_time: this never happens", to_string(*f.at)));
    if (sound({path + ".downtime", path + ".kill"})) {
      if (f.kind == fault_kind::restart && f.downtime <= duration::zero())
        error(path + ".downtime", "a restart needs a 'downtime' above 0s");
      if (f.kind != fault_kind::restart && sources_.given(path + ".downtime"))
        error_at_key(path + ".downtime", "'downtime' goes with 'restart'");
    }
    select(f, path + ".select");
  }

  void select(const fault& f, const std::string& path) {
    if (!sound({path, "peers"})) return;
    std::vector<std::string> names;
    for (const peer_group& group : s_.peers) {
      if (!sound({"peers." + group.name + ".count"})) return;
      if (selects(f.select, group)) return;
      if (group.count > 0) names.push_back(group.name + "-*");
      for (std::uint64_t i = 0; i < std::min<std::uint64_t>(group.count, 32); ++i)
        names.push_back(group.name + "-" + std::to_string(i));
    }
    if (names.empty()) return;   // no peers: said elsewhere
    error(path, fmt::format("'{}' selects no host", f.select), guess(f.select, names));
  }

  void expectations() {
    for (const auto& [metric, wanted] : s_.expect) {
      const std::string path = "expect." + metric;
      if (std::find(known_metrics().begin(), known_metrics().end(), metric) == known_metrics().end()) {
        error_at_key(path, fmt::format("unknown metric '{}'", metric), guess(metric, known_metrics()));
        continue;
      }
      if (!sound({path, path + ".min", path + ".max"})) continue;
      const auto inside = sources_.failed.lower_bound(path + ".");
      if (inside != sources_.failed.end() && inside->starts_with(path + ".")) continue;   // an unknown key
      if (!wanted.min && !wanted.max)
        error_at_key(path, fmt::format("{} needs a 'min' or a 'max'", path));
      else if (wanted.min && wanted.max && *wanted.min > *wanted.max)
        error(path + ".min", fmt::format("min {} is above max {}", *wanted.min, *wanted.max));
    }
  }

  const scenario& s_;
  const source_map& sources_;
  const std::string& folder_;
  std::vector<problem>& problems_;
};

}  // namespace

std::span<const std::string> known_probes() {
  static const std::vector<std::string> names{
      "matchmaking.joined",        "group.begun",              "all_reduce.first_part_sent",
      "all_reduce.half_sent",      "all_reduce.half_replied",  "all_reduce.before_commit",
      "training.step",             "state.half_sent"};
  return names;
}

std::span<const std::string> known_metrics() {
  static const std::vector<std::string> names{
      "loss.final", "loss.first",   "loss.baseline", "peers_alive", "rounds.ok",      "rounds.partial",
      "rounds.split", "rounds.failed", "epochs",        "samples",     "virtual_seconds"};
  return names;
}

void check_scenario(const scenario& what, const source_map& sources, const std::string& folder,
                    std::vector<problem>& problems) {
  checker(what, sources, folder, problems).run();
}

std::string path_from(const std::string& folder, const std::string& path) {
  if (path.empty() || path.front() == '/') return path;
  if (path == "~" || path.starts_with("~/"))
    if (const char* home = std::getenv("HOME"); home && *home == '/') return home + path.substr(1);
  return (std::filesystem::path(folder) / path).lexically_normal().string();
}

}  // namespace shoal::scenarios
