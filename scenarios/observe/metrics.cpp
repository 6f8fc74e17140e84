#include "scenarios/observe/metrics.hpp"

#include "kernels/base/check.hpp"

#include <fmt/format.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <cmath>
#include <map>
#include <vector>

namespace shoal::scenarios {

namespace {

using enum metric_kind;

constexpr metric_definition definitions[] = {
    {metric::virtual_time, "time", "shoal_time_seconds", "", "", gauge, "s",
     "Time since the run began, virtual in the world 'sim'."},
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
     "Rounds that all survivors completed with everybody's weight in every part."},
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
     "", counter, "1", "Violations of what has to be true of every run."},
};

constexpr std::size_t count = std::size(definitions);

constexpr bool in_order() {
  for (std::size_t i = 0; i < count; ++i)
    if (static_cast<std::size_t>(definitions[i].id) != i)
      return false;
  return true;
}
static_assert(in_order(), "definitions follow the enum");

} // namespace

std::span<const metric_definition> metric_definitions() {
  return definitions;
}

std::string metrics_page() {
  std::string out = "# Metrics\n\n"
                    "Written by `shoal`; edit `scenarios/observe/metrics.cpp` instead. Each metric "
                    "is a column of\n"
                    "`metrics.csv`, sampled every `record.metrics_interval` of virtual time, and a "
                    "Prometheus metric. An\n"
                    "empty field means that the value is not known yet.\n\n"
                    "| column | Prometheus | kind | unit | meaning |\n"
                    "|---|---|---|---|---|\n";
  for (const metric_definition& d : definitions) {
    const std::string name = d.label.empty()
                                 ? std::string(d.name)
                                 : fmt::format("{}{{{}=\"{}\"}}", d.name, d.label, d.value);
    out += fmt::format("| `{}` | `{}` | {} | {} | {} |\n", d.column, name,
                       d.kind == counter ? "counter" : "gauge", d.unit, d.help);
  }
  return out;
}

struct metrics::handles {
  // One of the two for each metric.
  std::array<prometheus::Counter*, count> counters{};
  std::array<prometheus::Gauge*, count> gauges{};
  std::array<std::optional<double>, count> values{};
};

metrics::metrics()
    : registry_(std::make_shared<prometheus::Registry>()), handles_(std::make_unique<handles>()) {
  for (std::size_t i = 0; i < count; ++i) {
    const metric_definition& d = definitions[i];
    // A family is described by its first metric; registering it again finds it.
    std::string_view help = d.help;
    for (const metric_definition& other : definitions) {
      if (other.name != d.name)
        continue;
      help = other.help;
      break;
    }
    std::map<std::string, std::string> labels;
    if (!d.label.empty())
      labels.emplace(d.label, d.value);
    if (d.kind == counter) {
      handles_->counters[i] = &prometheus::BuildCounter()
                                   .Name(std::string(d.name))
                                   .Help(std::string(help))
                                   .Register(*registry_)
                                   .Add(labels);
      handles_->values[i] = 0;
    } else {
      handles_->gauges[i] = &prometheus::BuildGauge()
                                 .Name(std::string(d.name))
                                 .Help(std::string(help))
                                 .Register(*registry_)
                                 .Add(labels);
      handles_->gauges[i]->Set(std::nan(""));
    }
  }
}

metrics::~metrics() = default;

void metrics::set(metric which, std::optional<double> value) {
  const auto i = static_cast<std::size_t>(which);
  if (value && !std::isfinite(*value))
    value.reset();
  if (definitions[i].kind == counter) {
    // A round that turns out otherwise is taken back from its outcome; Prometheus counters only
    // rise.
    if (!value)
      return;
    const double before = handles_->counters[i]->Value();
    if (*value > before)
      handles_->counters[i]->Increment(*value - before);
  } else {
    handles_->gauges[i]->Set(value.value_or(std::nan("")));
  }
  handles_->values[i] = value;
}

std::optional<double> metrics::get(metric which) const {
  return handles_->values[static_cast<std::size_t>(which)];
}

std::string metrics::csv_header() {
  std::string out;
  for (const metric_definition& d : definitions)
    out += fmt::format("{}{}", out.empty() ? "" : ",", d.column);
  return out + "\n";
}

std::string metrics::csv_row() const {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    if (i != 0)
      out += ',';
    const std::optional<double> value = handles_->values[i];
    if (!value)
      continue;
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
