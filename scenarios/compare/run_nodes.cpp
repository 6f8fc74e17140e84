#include "scenarios/compare/run_nodes.hpp"

#include "actors/averaging/observations.hpp"
#include "actors/reasons.hpp"
#include "scenarios/observe/rounds.hpp"
#include "scenarios/observe/run_directory.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <set>

namespace shoal::scenarios {

namespace {

namespace fs = std::filesystem;

/// One line of a node's log. Times count from the start of the first node.
struct node_event {
  duration time{};
  actors::peer_id peer = 0; // the peer of this incarnation of the node
  bool ends = false;        // true: `end` is set; false: `contribution` is set
  actors::contributed contribution;
  actors::round_ended end;
};

/// One incarnation of one node.
struct node_run {
  fs::path directory;
  run_yaml yaml;
  std::optional<summary> totals;         // empty: the process was killed
  std::map<std::string, double> metrics; // the last row of metrics.csv
  duration began{};                      // time since the start of the first node
  std::vector<node_event> events;
  std::map<std::uint64_t, recorded_epoch> epochs;
  duration last_sign{}; // time since the start of the first node
  bool running = false; // the process still writes

  /// Whether the peer has left, so that no round waits for it after its last sign.
  bool left() const { return totals ? totals->peers.left > 0 : !running; }

  std::uint64_t metric(const char* column) const {
    const auto found = metrics.find(column);
    return found == metrics.end() ? 0 : static_cast<std::uint64_t>(found->second);
  }
};

actors::group_id group_of(const std::string& hex) {
  const auto half = [&](std::size_t from) {
    std::uint64_t out = 0;
    if (hex.size() == 32) std::from_chars(hex.data() + from, hex.data() + from + 16, out, 16);
    return out;
  };
  return {half(0), half(16)};
}

/// The enum value of a name, by the name's place in `names`. Returns the last value for a name that
/// only another version knows.
template <class Enum, std::size_t N>
Enum value_of(const std::array<std::string_view, N>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return static_cast<Enum>(std::min<std::size_t>(found - names.begin(), N - 1));
}

node_event event_of(const nlohmann::json& line, duration began, actors::peer_id peer) {
  node_event out;
  out.time = began + duration(line.at("time_ns").get<std::int64_t>());
  out.peer = peer;
  out.ends = line.at("what") == "round_ended";
  const auto group = group_of(line.at("group").get<std::string>());
  const auto epoch = line.at("epoch").get<std::uint64_t>();
  const auto member = line.at("member").get<std::uint32_t>();
  const auto members = line.at("members").get<std::uint32_t>();
  if (!out.ends) {
    auto& to = out.contribution;
    to.group = group;
    to.epoch = epoch;
    to.member = member;
    to.members = members;
    line.at("weight").get_to(to.weight);
    line.at("takes").get_to(to.takes);
    line.at("first_of_two").get_to(to.first_of_two);
    to.samples = {
        {0, line.at("samples").get<std::uint32_t>()}}; // only the number of samples matters
    return out;
  }
  auto& to = out.end;
  to.group = group;
  to.epoch = epoch;
  to.member = member;
  to.members = members;
  to.outcome = value_of<actors::outcome>(actors::outcome_names, line.at("outcome"));
  to.reason = value_of<actors::reason>(actors::reason_names, line.at("reason"));
  to.parts = {{0, 1, line.at("senders").get<std::vector<std::uint32_t>>(), 0}};
  if (const auto started = line.at("started_ns").get<std::int64_t>(); started != 0)
    to.started_ns = static_cast<std::uint64_t>((began + duration(started)).count());
  return out;
}

/// Reads all facts of a node but the times, which depend on the first node's start.
result<node_run> open_node(const fs::path& directory) {
  node_run out;
  out.directory = directory;
  auto yaml = read_run_yaml(directory);
  if (!yaml) return failure{yaml.error()};
  out.yaml = std::move(*yaml);
  if (out.yaml.made_by.node.empty())
    return failure{fmt::format(
        "'{}' is a whole run, not what a node of a cluster wrote: give its directory itself",
        directory.string())};
  if (!out.yaml.made_by.started_utc_ns)
    return failure{fmt::format("'{}' does not say when it began (x-run.started_utc_ns)",
                               (directory / "run.yaml").string())};
  std::error_code error;
  if (fs::exists(directory / "summary.json", error)) {
    auto totals = read_summary(directory);
    if (!totals) return failure{totals.error()};
    out.totals = std::move(*totals);
  }
  auto metrics = last_metrics(directory);
  if (!metrics) return failure{metrics.error()};
  out.metrics = std::move(*metrics);
  auto epochs = read_epochs(directory);
  if (!epochs) return failure{epochs.error()};
  out.epochs = std::move(*epochs);
  return out;
}

result<void> read_log(node_run& of, actors::peer_id peer) {
  of.last_sign = of.began;
  if (const auto found = of.metrics.find("time"); found != of.metrics.end())
    of.last_sign += from_seconds(found->second);
  if (!whole_or_partial(of.directory, "events.jsonl.zst")) return {};
  const auto log =
      read_events(of.directory, {"contributed", "round_ended"}, [&](const nlohmann::json& line) {
        of.events.push_back(event_of(line, of.began, peer));
      });
  if (!log) return failure{log.error()};
  if (!of.events.empty()) of.last_sign = std::max(of.last_sign, of.events.back().time);
  return {};
}

/// Feeds the nodes' observations to a round_book of the whole swarm, in the order of time.
void count_rounds(const std::vector<node_run>& nodes, run_record& out) {
  struct heard {
    duration time;
    const node_event* event; // null: the peer has left or was killed
    actors::peer_id peer;
  };
  std::vector<heard> all;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const node_event& event : nodes[i].events) all.push_back({event.time, &event, event.peer});
    if (nodes[i].left()) all.push_back({nodes[i].last_sign, nullptr, i + 1});
  }
  // The sort is stable: observations of one node at one time keep their order.
  std::stable_sort(all.begin(), all.end(),
                   [](const heard& a, const heard& b) { return a.time < b.time; });
  round_book book([&](const swarm_round& round) {
    if (round.unfinished) return;
    out.all_rounds.push_back({round.epoch, round.group.hex(), to_seconds(round.started),
                              to_seconds(round.ended),
                              static_cast<std::uint32_t>(round.members.size()),
                              std::string(actors::to_string(round.outcome)),
                              std::string(actors::to_string(round.reason)), round.first_of_two,
                              samples_included(round)});
    out.samples += out.all_rounds.back().samples;
  });
  for (const heard& one : all) {
    book.advance(one.time);
    if (one.event == nullptr)
      book.killed(one.time, one.peer);
    else if (one.event->ends)
      book.ended(one.time, one.peer, one.event->end);
    else
      book.contributed(one.time, one.peer, one.event->contribution);
  }
  book.finish(all.empty() ? duration{} : all.back().time);
  const round_counts& counts = book.counts();
  using actors::outcome;
  out.rounds = {counts.of(outcome::ok),
                counts.of(outcome::partial),
                counts.of(outcome::split),
                counts.of(outcome::failed),
                counts.by_reason,
                counts.completed > 0 ? std::optional(counts.completed_seconds /
                                                     static_cast<double>(counts.completed))
                                     : std::nullopt};
  std::stable_sort(
      out.all_rounds.begin(), out.all_rounds.end(),
      [](const recorded_round& a, const recorded_round& b) { return a.ended < b.ended; });
}

void add_epochs(const node_run& from, std::map<std::uint64_t, recorded_epoch>& into) {
  for (const auto& [number, of] : from.epochs) {
    recorded_epoch& to = into[number];
    if (of.reached_seconds) {
      const double reached = to_seconds(from.began) + *of.reached_seconds;
      to.reached_seconds = std::min(to.reached_seconds.value_or(reached), reached);
    }
    if (of.loss_train) {
      const auto before = static_cast<double>(to.samples), more = static_cast<double>(of.samples);
      to.loss_train =
          (to.loss_train.value_or(0) * before + *of.loss_train * more) / (before + more);
    }
    to.samples += of.samples;
    if (of.loss_held_out) // all peers measure the same state of an epoch
      to.loss_held_out = of.loss_held_out;
  }
}

void add_totals(const node_run& from, run_record& into) {
  summary::sent_bytes bytes{from.metric("bytes_data"), from.metric("bytes_averaging"),
                            from.metric("bytes_state"), from.metric("bytes_control")};
  summary::peer_totals peers{from.metric("peers_joined"), from.metric("peers_joined"), 0};
  std::uint64_t epochs = from.metric("epoch");
  if (from.totals) {
    bytes = from.totals->bytes_sent;
    peers = from.totals->peers;
    epochs = from.totals->epochs;
  }
  into.bytes.data += bytes.data;
  into.bytes.averaging += bytes.averaging;
  into.bytes.state += bytes.state;
  into.bytes.control += bytes.control;
  into.peers.joined += peers.joined;
  into.peers.left += peers.left;
  into.peers.alive += peers.alive;
  into.epochs = std::max(into.epochs, epochs);
}

/// Takes the first loss from the node that began first, and the last losses from the nodes at the
/// highest epoch. Nodes at one epoch hold the same parameters.
void set_losses(const std::vector<node_run>& nodes, run_record& out) {
  std::optional<duration> first;
  double sum = 0;
  std::size_t count = 0;
  for (const node_run& node : nodes) {
    if (!node.totals) continue;
    if (node.totals->loss.first && (!first || node.began < *first)) {
      out.first_loss = node.totals->loss.first;
      first = node.began;
    }
    if (node.totals->loss.final && node.totals->epochs == out.epochs) {
      sum += *node.totals->loss.final;
      ++count;
    }
  }
  if (count > 0)
    out.final_loss = sum / static_cast<double>(count);
  else if (const auto last =
               std::find_if(out.by_epoch.rbegin(), out.by_epoch.rend(),
                            [](const auto& one) { return one.second.loss_held_out.has_value(); });
           last != out.by_epoch.rend()) {
    out.final_loss = last->second.loss_held_out;
    if (std::none_of(nodes.begin(), nodes.end(), [](const node_run& node) { return node.running; }))
      out.notes.push_back(fmt::format(
          "no node that came to the end measured the loss there: that of epoch {} is taken",
          last->first));
  }
}

} // namespace

result<run_yaml> read_run_yaml(const fs::path& directory) {
  auto text = read_file(directory / "run.yaml");
  if (!text) return failure{text.error()};
  run_yaml out{parse_document(*text), {}};
  if (!out.options.root)
    return failure{fmt::format(
        "'{}': {}", (directory / "run.yaml").string(),
        out.options.problems.empty() ? "it is empty" : out.options.problems.front().message)};
  auto made_by = provenance_of(out.options);
  if (!made_by)
    return failure{fmt::format("'{}': {}", (directory / "run.yaml").string(), made_by.error())};
  out.made_by = std::move(*made_by);
  return out;
}

result<run_record> read_nodes(const fs::path& path, const std::vector<fs::path>& directories,
                              const std::set<fs::path>& running) {
  run_record out;
  out.path = path.string();
  std::vector<node_run> nodes;
  for (const fs::path& directory : directories) {
    if (!whole_or_partial(directory, "run.yaml")) {
      out.notes.push_back(fmt::format("'{}' is left out: it has no run.yaml", directory.string()));
      continue;
    }
    auto node = open_node(directory);
    if (!node) return failure{node.error()};
    node->running = running.contains(directory);
    nodes.push_back(std::move(*node));
  }
  if (nodes.empty()) return failure{fmt::format("no folder in '{}' has a run.yaml", path.string())};
  for (const node_run& node : nodes)
    if (const auto difference = scenarios_differ(nodes.front().yaml.options, node.yaml.options))
      return failure{fmt::format("'{}' and '{}' are not of one run: {}",
                                 nodes.front().directory.string(), node.directory.string(),
                                 *difference)};
  const auto first =
      *std::min_element(nodes.begin(), nodes.end(), [](const node_run& a, const node_run& b) {
         return *a.yaml.made_by.started_utc_ns < *b.yaml.made_by.started_utc_ns;
       })->yaml.made_by.started_utc_ns;
  std::set<std::string> names;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    node_run& node = nodes[i];
    node.began = duration(*node.yaml.made_by.started_utc_ns - first);
    if (auto read = read_log(node, i + 1); !read) return failure{read.error()};
    names.insert(node.yaml.made_by.node);
    if (!node.totals && !node.running)
      out.notes.push_back(fmt::format("{} was killed, or has not ended: '{}' goes to {:.1f} s",
                                      node.yaml.made_by.node, node.directory.string(),
                                      to_seconds(node.last_sign)));
    add_epochs(node, out.by_epoch);
    add_totals(node, out);
  }
  out.directories = nodes.size();
  out.nodes = names.size();
  out.yaml = nodes.front().yaml.options;
  out.made_by = nodes.front().yaml.made_by;
  out.world = "cluster";
  if (const entry* name = out.yaml.root->find("name")) out.scenario = name->value->text;
  if (const entry* seed = out.yaml.root->find("seed"))
    std::from_chars(seed->value->text.data(), seed->value->text.data() + seed->value->text.size(),
                    out.seed);
  count_rounds(nodes, out);
  set_losses(nodes, out);
  for (const auto& [number, of] : out.by_epoch)
    if (of.reached_seconds) out.seconds = *of.reached_seconds;
  return out;
}

} // namespace shoal::scenarios
