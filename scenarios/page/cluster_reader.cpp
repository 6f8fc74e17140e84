#include "scenarios/page/cluster_reader.hpp"

#include "scenarios/compare/run_nodes.hpp"
#include "scenarios/observe/case_book.hpp"
#include "scenarios/observe/guard_book.hpp"
#include "scenarios/observe/metrics.hpp"
#include "scenarios/observe/run_directory.hpp"
#include "scenarios/observe/summary.hpp"
#include "scenarios/page/page_text.hpp"
#include "scenarios/page/run_facts.hpp"
#include "scenarios/page/run_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>

namespace shoal::scenarios {

namespace {

namespace fs = std::filesystem;

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

/// The columns of metrics.csv.
const std::vector<const metric_definition*>& columns() {
  static const auto all = [] {
    std::vector<const metric_definition*> out;
    for (const metric_definition& one : metric_definitions())
      if (!one.column.empty()) out.push_back(&one);
    return out;
  }();
  return all;
}

std::size_t column_of(metric id) {
  const auto found = std::find_if(columns().begin(), columns().end(),
                                  [id](const metric_definition* one) { return one->id == id; });
  return static_cast<std::size_t>(found - columns().begin());
}

struct metrics_at {
  duration time{};
  std::vector<double> values; // one value for each column; NaN: unknown
};

metrics_at parse_row(std::string_view line, duration began) {
  metrics_at out{{}, std::vector<double>(columns().size(), unknown)};
  for (double& value : out.values) {
    const std::size_t comma = line.find(',');
    const std::string_view field = line.substr(0, comma);
    double parsed = 0;
    if (std::from_chars(field.data(), field.data() + field.size(), parsed).ec == std::errc{})
      value = parsed;
    if (comma == std::string_view::npos) break;
    line.remove_prefix(comma + 1);
  }
  out.time = began + from_seconds(std::isfinite(out.values[0]) ? out.values[0] : 0);
  return out;
}

/// Collects the reports of all nodes, to replay them later in the order of their common time.
/// Ignores rounds, because each member has its own view of a round.
class gathered final : public run_listener {
public:
  struct told {
    duration time;
    std::function<void(run_listener&)> what;
  };
  /// Starts the reports of the next node. `began` is its start, and `rows` receives its metrics.
  void node(duration began, std::vector<metrics_at>& rows) {
    began_ = began;
    rows_ = &rows;
  }
  /// Replays all reports to `to`, with the rounds in between.
  void tell(std::vector<told> rounds, run_listener& to) {
    // The ends of a round's members precede the round.
    all_.insert(all_.end(), std::make_move_iterator(rounds.begin()),
                std::make_move_iterator(rounds.end()));
    std::stable_sort(all_.begin(), all_.end(),
                     [](const told& a, const told& b) { return a.time < b.time; });
    for (const told& one : all_) one.what(to);
    if (!sent_.empty()) to.traffic(sent_);
  }

  void begun(std::string_view) override {}
  void metrics_row(std::string_view row) override { rows_->push_back(parse_row(row, began_)); }
  void epoch_rows(std::string_view) override {}
  void host_started(duration time, std::string_view host) override {
    later(time,
          [host = std::string(host)](duration at, run_listener& to) { to.host_started(at, host); });
  }
  void host_ended(duration time, std::string_view host, std::string_view reason) override {
    later(time, [host = std::string(host), reason = std::string(reason)](
                    duration at, run_listener& to) { to.host_ended(at, host, reason); });
  }
  void phase(duration time, std::string_view host, std::string_view phase) override {
    later(time, [host = std::string(host), phase = std::string(phase)](
                    duration at, run_listener& to) { to.phase(at, host, phase); });
  }
  void round_ended(duration time, const heard_end& what) override {
    later(time, [host = std::string(what.host), group = std::string(what.group),
                 outcome = std::string(what.outcome), reason = std::string(what.reason),
                 epoch = what.epoch](duration at, run_listener& to) {
      to.round_ended(at, {host, group, epoch, outcome, reason});
    });
  }
  void round(const heard_round&) override {}
  void contribution(duration time, std::string_view host, std::uint64_t samples,
                    double loss) override {
    later(time, [host = std::string(host), samples, loss](duration at, run_listener& to) {
      to.contribution(at, host, samples, loss);
    });
  }
  void fault(duration time, std::uint64_t number, std::string_view action, bool begins,
             std::span<const std::string> hosts) override {
    later(time, [number, action = std::string(action), begins,
                 hosts = std::vector(hosts.begin(), hosts.end())](duration at, run_listener& to) {
      to.fault(at, number, action, begins, hosts);
    });
  }
  void case_event(const scenarios::case_event& what) override {
    later(what.at, [what](duration at, run_listener& to) {
      auto shifted = what;
      shifted.at = at;
      to.case_event(shifted);
    });
  }
  void guarded_round(const scenarios::guarded_round& what) override {
    later(what.at, [what](duration at, run_listener& to) {
      auto shifted = what;
      shifted.at = at;
      to.guarded_round(shifted);
    });
  }
  void transfer(const heard_transfer& what) override {
    // Order transfers by the time at which they leave.
    later(what.left, [what, from = std::string(what.from), to_host = std::string(what.to),
                      type = std::string(what.type), why = std::string(what.held_back_by),
                      began = began_](duration, run_listener& to) {
      heard_transfer moved = what;
      moved.from = from;
      moved.to = to_host;
      moved.type = type;
      moved.held_back_by = why;
      for (duration* time : {&moved.sent, &moved.begun, &moved.left, &moved.arrives})
        *time += began;
      to.transfer(moved);
    });
  }
  void stage_held(duration time, std::string_view host,
                  std::optional<std::uint32_t> stage) override {
    later(time, [host = std::string(host), stage](duration at, run_listener& to) {
      to.stage_held(at, host, stage);
    });
  }
  void stage_worked(duration time, const heard_work& what) override {
    later(time, [what, host = std::string(what.host)](duration at, run_listener& to) {
      heard_work moved = what;
      moved.host = host;
      to.stage_worked(at, moved);
    });
  }
  void expert(duration time, const heard_expert& what) override {
    later(time, [what, host = std::string(what.host),
                 expert = std::string(what.expert)](duration at, run_listener& to) {
      heard_expert moved = what;
      moved.host = host;
      moved.expert = expert;
      to.expert(at, moved);
    });
  }
  bool wants_traffic() override { return false; }
  void traffic(std::span<const sent_bytes> all) override {
    for (const sent_bytes& one : all) {
      const auto keep = [this](std::string_view word) -> std::string_view {
        return *words_.emplace(word).first;
      };
      sent_.push_back({keep(one.host), keep(one.region), keep(one.to_region), one.bytes});
    }
  }
  void ended(std::string_view) override {}

private:
  template <class Tell>
  void later(duration time, Tell tell) {
    const duration at = began_ + time;
    all_.push_back({at, [at, tell = std::move(tell)](run_listener& to) { tell(at, to); }});
  }

  duration began_{};
  std::vector<metrics_at>* rows_ = nullptr;
  std::vector<told> all_;
  std::vector<sent_bytes> sent_;
  std::set<std::string, std::less<>> words_;
};

/// One life of one node.
struct member {
  node_directory directory;
  run_facts facts;
  duration began{}; // start, relative to the first node's start
  std::vector<metrics_at> rows;
  std::optional<summary> totals;

  double last(metric id) const {
    return rows.empty() ? unknown : rows.back().values[column_of(id)];
  }
  std::uint64_t count(metric id) const {
    return std::isfinite(last(id)) ? static_cast<std::uint64_t>(last(id)) : 0;
  }
};

std::uint64_t bytes_of(const member& of) {
  std::uint64_t out = 0;
  for (const metric id :
       {metric::bytes_data, metric::bytes_averaging, metric::bytes_state, metric::bytes_control})
    out += of.count(id);
  return out;
}

/// Returns the bytes sent by all nodes, without the receivers' regions.
std::vector<sent_bytes> sent_so_far(const std::vector<member>& nodes) {
  std::vector<sent_bytes> out;
  out.reserve(nodes.size());
  for (const member& one : nodes)
    out.push_back({one.facts.made_by.node,
                   {},
                   {},
                   {one.count(metric::bytes_data), one.count(metric::bytes_averaging),
                    one.count(metric::bytes_state), one.count(metric::bytes_control)}});
  return out;
}

/// Joins the newest row of each node to one row of the cluster. `over` marks the nodes without
/// further rows.
std::string joined_row(duration time, const std::vector<const metrics_at*>& newest,
                       const std::vector<bool>& over, const run_record& rounds,
                       std::size_t& next_round, std::array<std::uint64_t, 4>& by_outcome) {
  for (; next_round < rounds.all_rounds.size() &&
         rounds.all_rounds[next_round].ended <= to_seconds(time);
       ++next_round) {
    constexpr std::array<std::string_view, 4> words{"ok", "partial", "split", "failed"};
    const auto found = std::find(words.begin(), words.end(), rounds.all_rounds[next_round].outcome);
    ++by_outcome[std::min<std::size_t>(static_cast<std::size_t>(found - words.begin()),
                                       words.size() - 1)];
  }
  const std::size_t samples = column_of(metric::samples), epoch = column_of(metric::epoch);
  std::string out;
  for (std::size_t i = 0; i < columns().size(); ++i) {
    const metric id = columns()[i]->id;
    double value = unknown, weights = 0;
    const auto add = [&value](double more) { value = (std::isfinite(value) ? value : 0) + more; };
    if (id == metric::virtual_time) {
      value = to_seconds(time);
    } else if (id >= metric::rounds_ok && id <= metric::rounds_failed) {
      value = static_cast<double>(
          by_outcome[static_cast<std::size_t>(id) - static_cast<std::size_t>(metric::rounds_ok)]);
    } else {
      double reached = -1;
      for (std::size_t n = 0; n < newest.size(); ++n) {
        if (newest[n] == nullptr || !std::isfinite(newest[n]->values[i])) continue;
        const double here = newest[n]->values[i];
        if (id == metric::epoch) {
          value = std::isfinite(value) ? std::max(value, here) : here;
        } else if (id == metric::loss_train) {
          // A node's loss is about its own samples, so weight it by them.
          const double weight = std::max(newest[n]->values[samples], 1.0);
          add(here * weight);
          weights += weight;
        } else if (id == metric::loss_held_out) {
          if (newest[n]->values[epoch] > reached) value = here;
          reached = std::max(reached, newest[n]->values[epoch]);
        } else if (id == metric::peers_left) {
          // A killed node did not count its own end.
          const double alive = newest[n]->values[column_of(metric::peers_alive)];
          add(here + (over[n] && alive > 0 ? alive : 0));
        } else if (columns()[i]->kind == metric_kind::counter || !over[n]) {
          add(here);
        } else {
          add(0);
        }
      }
      if (id == metric::loss_train && weights > 0) value /= weights;
    }
    out += i == 0 ? "" : ",";
    out += std::isfinite(value) ? fmt::format("{}", value) : "";
  }
  return out + "\n";
}

void tell_metrics(const std::vector<member>& nodes, const run_record& record, duration interval,
                  run_view& to) {
  std::vector<std::pair<std::size_t, const metrics_at*>> all;
  for (std::size_t n = 0; n < nodes.size(); ++n)
    for (const metrics_at& row : nodes[n].rows) all.emplace_back(n, &row);
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.second->time < b.second->time; });
  std::vector<const metrics_at*> newest(nodes.size(), nullptr);
  std::vector<bool> over(nodes.size(), false);
  std::size_t next_round = 0;
  std::array<std::uint64_t, 4> by_outcome{};
  // Write one row after each node has had a row.
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto [n, row] = all[i];
    newest[n] = row;
    const bool turns =
        i + 1 == all.size() || all[i + 1].second->time / interval != row->time / interval;
    if (!turns) continue;
    for (std::size_t k = 0; k < nodes.size(); ++k)
      over[k] = !nodes[k].directory.running && newest[k] != nullptr &&
                newest[k] == &nodes[k].rows.back() && row->time - newest[k]->time > 2 * interval;
    // Failed attempts to form a group count, but are not among the rounds and have no time. Count
    // them in the last row.
    if (i + 1 == all.size()) {
      next_round = record.all_rounds.size();
      by_outcome = {record.rounds.ok, record.rounds.partial, record.rounds.split,
                    record.rounds.failed};
    }
    to.metrics_row(joined_row(row->time, newest, over, record, next_round, by_outcome));
  }
}

/// Joins the summaries of all nodes. Each node checked only the invariants that one host can check.
summary joined_summary(const std::vector<member>& nodes, const run_record& record) {
  summary out;
  out.scenario = record.scenario;
  out.world = "cluster";
  out.seed = record.seed;
  out.virtual_seconds = record.seconds;
  out.epochs = record.epochs;
  out.samples = record.samples;
  out.loss.first = record.first_loss;
  out.loss.final = record.final_loss;
  out.rounds = record.rounds;
  out.bytes_sent = record.bytes;
  out.peers = record.peers;
  bool same = true;
  for (const member& one : nodes) {
    const summary& of = *one.totals;
    out.wall_seconds = std::max(out.wall_seconds, to_seconds(one.began) + of.wall_seconds);
    out.peak_rss_bytes = std::max(out.peak_rss_bytes, of.peak_rss_bytes);
    if (of.loss.bigram) out.loss.bigram = of.loss.bigram;
    // All nodes at the latest epoch must have the same parameters.
    if (of.state_hash && of.epochs == record.epochs) {
      same = same && (!out.state_hash || out.state_hash == of.state_hash);
      out.state_hash = of.state_hash;
    }
    for (const auto& [name, checks] : of.invariants) {
      auto found = std::find_if(out.invariants.begin(), out.invariants.end(),
                                [&name = name](const auto& each) { return each.first == name; });
      if (found == out.invariants.end()) found = out.invariants.insert(found, {name, {}});
      found->second.checked += checks.checked;
      found->second.violated += checks.violated;
      if (found->second.first_violation.empty() && !checks.first_violation.empty())
        found->second.first_violation =
            fmt::format("{}: {}", one.facts.made_by.node, checks.first_violation);
    }
  }
  if (!same) out.state_hash.reset();
  return out;
}

std::string epochs_text(const run_record& of) {
  std::string out;
  const auto field = [](const std::optional<double>& value) {
    return value ? fmt::format("{}", *value) : std::string{};
  };
  for (const auto& [epoch, one] : of.by_epoch)
    out += fmt::format("{},{},{},{},{}\n", epoch, field(one.reached_seconds), one.samples,
                       field(one.loss_train), field(one.loss_held_out));
  return out;
}

run_view::node as_shown(const member& of) {
  const provenance& by = of.facts.made_by;
  run_view::node out;
  out.name = by.node;
  out.group = by.group.empty() ? by.node.substr(0, by.node.rfind('-')) : by.group;
  out.region = out.group == "shard" ? of.facts.shard_region : std::string{};
  for (const group_facts& group : of.facts.groups)
    if (group.name == out.group) out.region = group.region;
  out.address = by.address;
  out.directory = of.directory.path.lexically_normal().string();
  out.state = of.totals              ? (by.interrupted ? "interrupted" : "ended")
              : of.directory.running ? "running"
                                     : "silent";
  out.began = out.last = of.began;
  if (!of.rows.empty()) out.last = of.rows.back().time;
  out.epoch = of.totals ? of.totals->epochs : of.count(metric::epoch);
  out.samples = of.count(metric::samples);
  out.rounds = of.count(metric::rounds_ok);
  out.rounds_not_ok = of.count(metric::rounds_partial) + of.count(metric::rounds_split) +
                      of.count(metric::rounds_failed);
  out.bytes_sent = bytes_of(of);
  out.samples_per_second = of.last(metric::samples_per_second);
  return out;
}

} // namespace

bool is_node_directory(const fs::path& directory) {
  const auto yaml = read_file(directory / "run.yaml");
  return yaml && !facts_of(*yaml).made_by.node.empty();
}

bool still_writes(const fs::path& directory) {
  std::error_code error;
  if (fs::exists(directory / "summary.json", error)) return false;
  auto newest = fs::file_time_type::min(); // file_time_type's zero may be in the future
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error))
    if (std::error_code ignored; entry->is_regular_file(ignored))
      newest = std::max(newest, entry->last_write_time(ignored));
  // Logs are flushed with each row.
  const auto yaml = read_file(directory / "run.yaml");
  const auto row = parse_duration(yaml ? facts_of(*yaml).metrics_interval : std::string{});
  if (newest == fs::file_time_type::min()) return false;
  return fs::file_time_type::clock::now() - newest <
         std::max<duration>(std::chrono::seconds(30), 3 * (row ? *row : duration{}));
}

result<std::unique_ptr<run_view>> read_cluster_view(const fs::path& folder,
                                                    const std::vector<node_directory>& directories,
                                                    const std::vector<distant_node>& distant) {
  std::vector<fs::path> paths;
  std::set<fs::path> running;
  for (const node_directory& one : directories) {
    paths.push_back(one.path);
    if (one.running) running.insert(one.path);
  }
  auto record = read_nodes(folder, paths, running);
  if (!record) return failure{record.error()};

  std::vector<member> nodes;
  for (const node_directory& one : directories) {
    const auto yaml = read_file(one.path / "run.yaml");
    if (!yaml) continue; // read_nodes() has a note about it
    member& of = nodes.emplace_back(member{one, facts_of(*yaml), {}, {}, {}});
    if (auto totals = read_summary(one.path)) of.totals = std::move(*totals);
  }
  std::stable_sort(nodes.begin(), nodes.end(), [](const member& a, const member& b) {
    return a.facts.made_by.started_utc_ns.value_or(0) < b.facts.made_by.started_utc_ns.value_or(0);
  });
  const std::int64_t first = nodes.front().facts.made_by.started_utc_ns.value_or(0);

  auto out = std::make_unique<run_view>();
  // All nodes share the scenario in run.yaml. Remove the part about the node that wrote it.
  auto yaml = read_file(nodes.front().directory.path / "run.yaml");
  if (!yaml) return failure{yaml.error()};
  provenance made_by = nodes.front().facts.made_by;
  made_by.node.clear();
  made_by.group.clear();
  out->begun(yaml->substr(0, yaml->find("\nx-run:")) + to_yaml(made_by));

  gathered all;
  std::set<std::string> notes;
  for (member& one : nodes) {
    one.began = duration(one.facts.made_by.started_utc_ns.value_or(first) - first);
    all.node(one.began, one.rows);
    if (auto told = tell_directory(one.directory.path, one.facts, all,
                                   [&notes](std::string what) { notes.insert(std::move(what)); });
        !told)
      return failure{told.error()};
    // A node without a recorded end counts as alive until its last row.
    if (!one.totals && !one.directory.running && !one.rows.empty())
      all.host_ended(one.rows.back().time - one.began, one.facts.made_by.node, "process_killed");
  }
  std::vector<gathered::told> rounds;
  for (const recorded_round& one : record->all_rounds) {
    const duration ended = from_seconds(one.ended);
    rounds.push_back({ended, [&one, ended](run_listener& to) {
                        to.round({one.group, one.epoch, from_seconds(one.started), ended,
                                  one.members, one.outcome, one.reason, one.first_of_two,
                                  one.samples});
                      }});
  }
  all.tell(std::move(rounds), *out);
  // Receivers are known at the end of each process. Until then, use the bytes sent.
  std::error_code error;
  const bool received = std::all_of(nodes.begin(), nodes.end(), [&error](const member& one) {
    return fs::exists(one.directory.path / "traffic.csv", error);
  });
  if (!received) out->traffic(sent_so_far(nodes));
  const auto interval = parse_duration(nodes.front().facts.metrics_interval);
  tell_metrics(nodes, *record,
               interval ? std::max<duration>(*interval, std::chrono::milliseconds(1))
                        : duration(std::chrono::seconds(1)),
               *out);
  out->epoch_rows(epochs_text(*record));

  std::vector<run_view::node> shown;
  shown.reserve(nodes.size() + distant.size());
  for (const member& one : nodes) shown.push_back(as_shown(one));
  for (const distant_node& one : distant) {
    if (std::any_of(shown.begin(), shown.end(),
                    [&one](const run_view::node& each) { return each.name == one.shown.name; }))
      continue;
    run_view::node& row = shown.emplace_back(one.shown);
    row.began = duration(one.came_utc_ns - first);
    row.last = duration(one.seen_utc_ns - first);
  }
  out->set_nodes(std::move(shown));
  for (const std::string& one : record->notes) out->note(one);
  for (const std::string& one : notes) out->note(one);
  const auto any = [&nodes](auto holds) { return std::any_of(nodes.begin(), nodes.end(), holds); };
  if (any([](const member& one) { return one.directory.running && !one.totals; }))
    out->set_state("running");
  else if (any([](const member& one) { return !one.totals; }))
    out->set_state("unfinished");
  else
    out->ended(to_json(joined_summary(nodes, *record)));
  return out;
}

} // namespace shoal::scenarios
