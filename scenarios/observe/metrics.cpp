#include "scenarios/observe/metrics.hpp"

#include "actors/probes.hpp"
#include "actors/reasons.hpp"
#include "kernels/base/check.hpp"

#include <fmt/format.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace shoal::scenarios {

namespace {

using enum metric_kind;

constexpr metric_definition definitions[] = {
    {metric::virtual_time, "time", "shoal_time_seconds", "", "", gauge, "s",
     "Time since the run began; virtual time in the world 'sim'."},
    {metric::epoch, "epoch", "shoal_epoch", "", "", gauge, "1",
     "Highest epoch that any peer has reached."},
    {metric::samples, "samples", "shoal_samples_total", "", "", counter, "samples",
     "Samples whose gradients are in completed rounds."},
    {metric::samples_per_second, "samples_per_second", "shoal_samples_per_second", "", "", gauge,
     "samples/s",
     "Samples that peers computed since the row before, divided by the time since then."},
    {metric::loss_train, "loss_train", "shoal_loss", "split", "train", gauge, "nats",
     "Mean loss of the samples computed since the row before."},
    {metric::loss_held_out, "loss_held_out", "shoal_loss", "split", "held_out", gauge, "nats",
     "Last known mean loss on the held-out text, measured every `record.held_out_every` epochs."},
    {metric::peers_alive, "peers_alive", "shoal_peers", "is", "alive", gauge, "peers",
     "Peers whose host is up and that have not left."},
    {metric::peers_in_sync, "peers_in_sync", "shoal_peers", "is", "in_sync", gauge, "peers",
     "Peers that compute or average, that is, that believe to hold the leading state."},
    {metric::peers_joined, "peers_joined", "shoal_peers_joined_total", "", "", counter, "peers",
     "Peers that have started; a restarted host counts again."},
    {metric::peers_left, "peers_left", "shoal_peers_left_total", "", "", counter, "peers",
     "Peers that were killed or left."},
    {metric::rounds_ok, "rounds_ok", "shoal_rounds_total", "outcome", "ok", counter, "rounds",
     "Rounds that all survivors completed, with the weight of every member in every part."},
    {metric::rounds_partial, "rounds_partial", "shoal_rounds_total", "outcome", "partial", counter,
     "rounds", "Rounds that all survivors completed with some weight missing from some parts."},
    {metric::rounds_split, "rounds_split", "shoal_rounds_total", "outcome", "split", counter,
     "rounds", "Rounds that some survivors completed and others did not."},
    {metric::rounds_failed, "rounds_failed", "shoal_rounds_total", "outcome", "failed", counter,
     "rounds", "Rounds that no survivor completed."},
    {metric::bytes_data, "bytes_data", "shoal_sent_bytes_total", "kind", "data", counter, "bytes",
     "Bytes sent between hosts to stream samples."},
    {metric::bytes_averaging, "bytes_averaging", "shoal_sent_bytes_total", "kind", "averaging",
     counter, "bytes", "Bytes sent between hosts to average."},
    {metric::bytes_state, "bytes_state", "shoal_sent_bytes_total", "kind", "state", counter,
     "bytes", "Bytes sent between hosts to download states."},
    {metric::bytes_control, "bytes_control", "shoal_sent_bytes_total", "kind", "control", counter,
     "bytes", "Bytes sent between hosts for everything else."},
    {metric::events, "events", "shoal_events_total", "", "", counter, "events",
     "Delivered events of history: messages between hosts, timers, deaths seen, hosts started and "
     "killed."},
    {metric::misbehaved, "misbehaved", "shoal_misbehaved_total", "", "", counter, "messages",
     "Messages that no correct peer sends; they were dropped."},
    {metric::invariant_violations, "invariant_violations", "shoal_invariant_violations_total", "",
     "", counter, "1", "Violations of the invariants, which are true of every correct run."},
    {metric::received_data, "", "shoal_received_bytes_total", "kind", "data", counter, "bytes",
     "Bytes received from other hosts to stream samples."},
    {metric::received_averaging, "", "shoal_received_bytes_total", "kind", "averaging", counter,
     "bytes", "Bytes received from other hosts to average."},
    {metric::received_state, "", "shoal_received_bytes_total", "kind", "state", counter, "bytes",
     "Bytes received from other hosts to download states."},
    {metric::received_control, "", "shoal_received_bytes_total", "kind", "control", counter,
     "bytes", "Bytes received from other hosts for everything else."},
    {metric::links_open, "", "shoal_links_open", "", "", gauge, "links",
     "Hosts to which this host has a connection."},
    {metric::links_lost, "", "shoal_links_lost_total", "", "", counter, "links",
     "Links that broke or on which the other host fell silent; most links are made again."},
    {metric::held_back, "", "shoal_links_held_back_total", "", "", counter, "1",
     "How often reading from a link paused until the next second, because too many frames had "
     "arrived."},
    {metric::bulk_window, "", "shoal_bulk_window_bytes", "", "", gauge, "bytes",
     "Bytes of bulk that arrived and are not handled yet, over all links."},
};

struct definition_by_label {
  metric_by_label id;
  std::string_view name, label, unit, help;
};
constexpr definition_by_label definitions_by_label[] = {
    {metric_by_label::rounds, "shoal_round_reasons_total", "reason", "rounds",
     "Rounds, and attempts at a round, that were not `ok` for this reason (docs/architecture.md "
     "lists the reasons)."},
    {metric_by_label::handshakes_refused, "shoal_handshakes_refused_total", "reason", "connections",
     "Connections that were refused before they could carry a message."},
    {metric_by_label::frames_refused, "shoal_frames_refused_total", "reason", "frames",
     "Frames of admitted hosts that were refused without reading their content."},
    {metric_by_label::points, "shoal_points_reached_total", "point", "1",
     "How often a peer reached this point of its protocols. `faults: on:` can strike at these "
     "points."},
};

constexpr std::string_view round_seconds_name = "shoal_round_seconds",
                           round_seconds_help =
                               "Time from closing the group to the last member's result, of rounds "
                               "that at least one member completed.";
/// The bounds reach from rounds in a local network to those of large models on slow lines. Each
/// bound is about twice the one before.
const std::vector<double> round_seconds_bounds{0.1, 0.25, 0.5, 1,   2.5, 5,   10,
                                               25,  50,   100, 250, 500, 1000};

constexpr std::size_t count = std::size(definitions);

constexpr bool in_order() {
  for (std::size_t i = 0; i < count; ++i)
    if (static_cast<std::size_t>(definitions[i].id) != i) return false;
  return true;
}
static_assert(in_order(), "definitions follow the enum");

std::string exposed_name(const metric_definition& d) {
  return d.label.empty() ? std::string(d.name)
                         : fmt::format("{}{{{}=\"{}\"}}", d.name, d.label, d.value);
}

} // namespace

std::span<const metric_definition> metric_definitions() {
  return definitions;
}

std::string metrics_page() {
  std::string out =
      "# Metrics\n\n"
      "Written by `shoal`; edit `scenarios/observe/metrics.cpp` instead. Each metric "
      "of the first table is a column of\n"
      "`metrics.csv`, sampled every `record.metrics_interval` of virtual time, and a "
      "Prometheus metric. An\n"
      "empty field means that the value is not known yet.\n\n"
      "`shoal run --metrics 127.0.0.1:9464` serves the metrics to Prometheus during the run, and "
      "`metrics.prom` holds their\n"
      "last values. The catalogue is the same in every world. In a cluster each process serves the "
      "metrics of its own host.\n"
      "The sums over the processes are the metrics of the swarm, except for rounds: each member of "
      "a round counts it.\n"
      "No label names a peer. [prometheus/](prometheus/) has an example configuration and alert "
      "rules.\n\n"
      "| column | Prometheus | kind | unit | meaning |\n"
      "|---|---|---|---|---|\n";
  const auto kind = [](const metric_definition& d) {
    return d.kind == counter ? "counter" : "gauge";
  };
  for (const metric_definition& d : definitions)
    if (!d.column.empty())
      out += fmt::format("| `{}` | `{}` | {} | {} | {} |\n", d.column, exposed_name(d), kind(d),
                         d.unit, d.help);
  out +=
      "\nThese metrics are for Prometheus only. A metric that a world does not have has no series "
      "there: only the network\n"
      "between real hosts has series of connections and frames. Every `reason` and `point` is from "
      "a closed list.\n\n"
      "| Prometheus | kind | unit | meaning |\n"
      "|---|---|---|---|\n";
  out += fmt::format("| `{}` | histogram | s | {} |\n", round_seconds_name, round_seconds_help);
  for (const definition_by_label& d : definitions_by_label)
    out +=
        fmt::format("| `{}{{{}=\"…\"}}` | counter | {} | {} |\n", d.name, d.label, d.unit, d.help);
  for (const metric_definition& d : definitions)
    if (d.column.empty())
      out += fmt::format("| `{}` | {} | {} | {} |\n", exposed_name(d), kind(d), d.unit, d.help);
  return out;
}

struct metrics::handles {
  // Each metric has a counter or a gauge.
  std::array<prometheus::Counter*, count> counters{};
  std::array<prometheus::Gauge*, count> gauges{};
  std::array<std::optional<double>, count> values{};
  prometheus::Histogram* round_seconds = nullptr;

  /// Makes the series of a metric. Thread safety: scrapers may read the registry meanwhile.
  void add(prometheus::Registry& to, const metric_definition& d);
};

void metrics::handles::add(prometheus::Registry& to, const metric_definition& d) {
  const auto i = static_cast<std::size_t>(d.id);
  // The first metric of a family describes it; registering the family again finds it.
  const auto first =
      std::find_if(std::begin(definitions), std::end(definitions),
                   [&](const metric_definition& other) { return other.name == d.name; });
  const std::string name(d.name), help(first->help);
  std::map<std::string, std::string> labels;
  if (!d.label.empty()) labels.emplace(d.label, d.value);
  if (d.kind == counter)
    counters[i] = &prometheus::BuildCounter().Name(name).Help(help).Register(to).Add(labels);
  else
    gauges[i] = &prometheus::BuildGauge().Name(name).Help(help).Register(to).Add(labels);
}

metrics::metrics()
    : registry_(std::make_shared<prometheus::Registry>()), handles_(std::make_unique<handles>()) {
  for (const metric_definition& d : definitions) {
    if (d.column.empty()) continue;
    handles_->add(*registry_, d);
    const auto i = static_cast<std::size_t>(d.id);
    if (d.kind == counter)
      handles_->values[i] = 0;
    else
      handles_->gauges[i]->Set(std::nan(""));
  }
  // Every world has rounds. A series that exists from the beginning shows its first increase.
  for (const std::string_view reason : actors::reason_names)
    if (reason != actors::to_string(actors::reason::none)) set(metric_by_label::rounds, reason, 0);
  for (const std::string_view point : actors::probes::all) set(metric_by_label::points, point, 0);
  handles_->round_seconds = &prometheus::BuildHistogram()
                                 .Name(std::string(round_seconds_name))
                                 .Help(std::string(round_seconds_help))
                                 .Register(*registry_)
                                 .Add({}, round_seconds_bounds);
}

metrics::~metrics() = default;

void metrics::set(metric which, std::optional<double> value) {
  const auto i = static_cast<std::size_t>(which);
  if (value && !std::isfinite(*value)) value.reset();
  if (value && handles_->counters[i] == nullptr && handles_->gauges[i] == nullptr)
    handles_->add(*registry_, definitions[i]);
  if (definitions[i].kind == counter) {
    // A late member may change a round's outcome, and the count of the old outcome then falls.
    // Prometheus counters only rise.
    if (!value) return;
    const double before = handles_->counters[i]->Value();
    if (*value > before) handles_->counters[i]->Increment(*value - before);
  } else {
    if (handles_->gauges[i] != nullptr) handles_->gauges[i]->Set(value.value_or(std::nan("")));
  }
  handles_->values[i] = value;
}

std::optional<double> metrics::get(metric which) const {
  return handles_->values[static_cast<std::size_t>(which)];
}

void metrics::set(metric_by_label which, std::string_view label, std::uint64_t count) {
  const definition_by_label& d = definitions_by_label[static_cast<std::size_t>(which)];
  // The lookup by name is cheap enough: a few series, once a sample.
  prometheus::Counter& series = prometheus::BuildCounter()
                                    .Name(std::string(d.name))
                                    .Help(std::string(d.help))
                                    .Register(*registry_)
                                    .Add({{std::string(d.label), std::string(label)}});
  const auto value = static_cast<double>(count);
  if (value > series.Value()) series.Increment(value - series.Value());
}

void metrics::set(const wire_counts& counts) {
  const metric kinds[] = {metric::received_data, metric::received_averaging, metric::received_state,
                          metric::received_control};
  for (std::size_t i = 0; i < counts.received_bytes.size(); ++i)
    set(kinds[i], static_cast<double>(counts.received_bytes[i]));
  set(metric::links_open, static_cast<double>(counts.links_open));
  set(metric::links_lost, static_cast<double>(counts.links_lost));
  set(metric::held_back, static_cast<double>(counts.held_back));
  set(metric::bulk_window, static_cast<double>(counts.bulk_window_bytes));
  for (const auto& [reason, refused] : counts.handshakes_refused)
    set(metric_by_label::handshakes_refused, reason, refused);
  for (const auto& [reason, refused] : counts.frames_refused)
    set(metric_by_label::frames_refused, reason, refused);
}

void metrics::add_round(double seconds) {
  handles_->round_seconds->Observe(seconds);
}

std::string metrics::csv_header() {
  std::string out;
  for (const metric_definition& d : definitions)
    if (!d.column.empty()) out += fmt::format("{}{}", out.empty() ? "" : ",", d.column);
  return out + "\n";
}

std::string metrics::csv_row() const {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    if (definitions[i].column.empty()) continue;
    if (i != 0) out += ',';
    const std::optional<double> value = handles_->values[i];
    if (!value) continue;
    const double v = *value;
    if (definitions[i].id == metric::virtual_time)
      out += fmt::format("{:.9f}", v);
    else if (v == std::floor(v) && std::abs(v) < 9e15)
      out += fmt::format("{:.0f}", v);
    else
      out += fmt::format("{}", v);
  }
  return out + "\n";
}

std::string metrics::exposition() const {
  return prometheus::TextSerializer().Serialize(registry_->Collect());
}

} // namespace shoal::scenarios
