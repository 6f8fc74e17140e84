// The options of churn. Only describe.hpp includes this file.
#pragma once

#include "scenarios/schema/churn_options.hpp"
#include "scenarios/schema/churn_presets.hpp"
#include "scenarios/schema/rule.hpp"

#include <array>

namespace shoal::scenarios {

constexpr auto names_of(distribution_kind) {
  using enum distribution_kind;
  return std::array{enum_name<distribution_kind>{always, "always"},
                    enum_name<distribution_kind>{exponential, "exponential"},
                    enum_name<distribution_kind>{weibull, "weibull"},
                    enum_name<distribution_kind>{log_normal, "log_normal"},
                    enum_name<distribution_kind>{gamma, "gamma"},
                    enum_name<distribution_kind>{hyperexponential, "hyperexponential"}};
}
constexpr auto names_of(time_unit) {
  return std::array{
      enum_name<time_unit>{time_unit::as_format, "format"},
      enum_name<time_unit>{time_unit::ms, "ms"}, enum_name<time_unit>{time_unit::s, "s"},
      enum_name<time_unit>{time_unit::min, "min"}, enum_name<time_unit>{time_unit::h, "h"}};
}
constexpr auto names_of(trace_match) {
  return std::array{enum_name<trace_match>{trace_match::as_format, "format"},
                    enum_name<trace_match>{trace_match::name, "name"},
                    enum_name<trace_match>{trace_match::order, "order"}};
}
constexpr auto names_of(trace_format_choice) {
  using enum trace_format_choice;
  return std::array{enum_name<trace_format_choice>{detect, "detect"},
                    enum_name<trace_format_choice>{csv, "csv"},
                    enum_name<trace_format_choice>{fta, "fta"},
                    enum_name<trace_format_choice>{simgrid, "simgrid"},
                    enum_name<trace_format_choice>{counts, "counts"},
                    enum_name<trace_format_choice>{events, "events"},
                    enum_name<trace_format_choice>{peers, "peers"}};
}

template <class V>
void describe(V& v, lifetime_phase& o) {
  v.field("weight", o.weight, "relative weight of this phase",
          {.above = 0, .at_most = 1e9, .fraction = true});
  v.field("mean", o.mean, "mean of this exponential phase", {.required = true, .above = 0});
}

template <class V>
void describe(V& v, lifetime_options& o) {
  v.field("distribution", o.distribution, "distribution of the duration; `always`: without end");
  v.field("mean", o.mean, "mean duration; one of `mean`, `median` and `scale` is given",
          {.hide_default = true, .otherwise = "required"});
  v.field("median", o.median, "median duration of `log_normal`, which is `exp(mu)`",
          {.hide_default = true, .otherwise = ""});
  v.field("scale", o.scale, "scale of `weibull` and `gamma`",
          {.hide_default = true, .otherwise = ""});
  v.field("shape", o.shape,
          "shape of `weibull` and `gamma`; a value below 1 gives many short and few very long "
          "durations",
          {.at_least = 0.1, .at_most = 100, .hide_default = true});
  v.field("sigma", o.sigma, "standard deviation of the logarithm, of `log_normal`",
          {.above = 0, .at_most = 10, .hide_default = true, .otherwise = "required there"});
  v.field("phases", o.phases, "phases of `hyperexponential`, in place of a mean",
          {.hide_default = true});
  v.field("at_most", o.at_most, "limit to which longer durations are cut; 0: none",
          {.hide_default = true});
}

template <class V>
void describe(V& v, diurnal_options& o) {
  v.field("amplitude", o.amplitude,
          "hosts come back `1 + amplitude` times as fast at the peak, and `1 - amplitude` times as "
          "fast twelve hours later",
          {.at_least = 0, .at_most = 1, .fraction = true});
  v.field("peak", o.peak, "local time of the peak", {.below = 86400});
  v.field("time_zone", o.time_zone,
          "offset from UTC; with `+3h` local time is ahead of UTC; the run begins at midnight UTC");
}

template <class V>
void describe(V& v, outage_options& o) {
  v.field("every", o.every, "time from the end of one outage to the next");
  v.field("lasting", o.lasting, "duration of an outage");
  v.field("share", o.share, "probability, for each host, that an outage takes the host away",
          {.above = 0, .at_most = 1, .fraction = true});
}

template <class V>
void describe(V& v, churn_options& o) {
  v.field("preset", o.preset,
          "a measured population, which fills in the options below that are not given",
          {.hide_default = true, .one_of = churn_preset_names});
  v.field("session", o.session,
          "duration of a session, at least 1ms; the first session begins at `start`",
          {.hide_default = true});
  v.field("gap", o.gap, "duration of an absence; `always`: the host does not come back",
          {.hide_default = true});
  v.field(
      "stationary", o.stationary,
      "a host begins in the middle of a session or a gap, as if churn had gone on before the run",
      {.hide_default = true});
  v.field("diurnal", o.diurnal, "time of day at which hosts come back faster",
          {.hide_default = true});
  v.field("outages", o.outages,
          "outages that take a part of the group away at once, and bring it back",
          {.hide_default = true});
  v.field("trace", o.trace,
          "trace file in place of `session` and `gap`, relative to the scenario's folder. A glob "
          "names several files, each for one host or more. Times count from the host's `start`. "
          "`shoal trace info FILE` shows the contents of a trace");
  v.field("format", o.format,
          "format of the trace. `csv`: rows `peer,start,end`. `fta`: event_trace of the Failure "
          "Trace Archive. `simgrid`: profile of a host. `counts`: rows `time,count`. `events`: "
          "JSON lines that add and remove nodes. `peers`: `peers.csv` of an earlier run",
          {.hide_default = true});
  v.field(
      "time_unit", o.unit,
      "unit of times that name none; `format`: milliseconds in `events`, seconds in other formats",
      {.hide_default = true});
  v.field("match", o.match,
          "how hosts get their peers of the trace. `name`: each host plays the peer of its name. "
          "`order`: the n-th host of the groups with this trace plays the n-th peer. `format`: "
          "`name` for `csv` and `peers`, `order` for other formats",
          {.hide_default = true});
  v.field("offset", o.offset, "position in the trace at a host's `start`", {.hide_default = true});
  v.field("speed", o.speed, "factor by which the trace passes faster",
          {.above = 0, .at_most = 1e6, .hide_default = true});
  v.field("loop", o.loop, "the trace begins again after its end", {.hide_default = true});
  v.field("ending", o.ending,
          "how a session ends; `process`: the connections are reset; `machine`: the host falls "
          "silent, like a closed laptop",
          {.hide_default = true});
}

} // namespace shoal::scenarios
