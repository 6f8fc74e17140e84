// The options of churn, named once: part of describe.hpp.
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
  v.field("weight", o.weight, "how often, beside the other phases' weights",
          {.above = 0, .at_most = 1e9, .fraction = true});
  v.field("mean", o.mean, "of this exponential phase", {.required = true, .above = 0});
}

template <class V>
void describe(V& v, lifetime& o) {
  v.field("distribution", o.distribution, "`always`: it never ends");
  v.field("mean", o.mean, "one of `mean`, `median` and `scale`",
          {.hide_default = true, .otherwise = "required"});
  v.field("median", o.median, "of `log_normal`: `exp(mu)`",
          {.hide_default = true, .otherwise = ""});
  v.field("scale", o.scale, "of `weibull` and `gamma`", {.hide_default = true, .otherwise = ""});
  v.field("shape", o.shape, "of `weibull` and `gamma`; below 1: many short, few very long",
          {.at_least = 0.1, .at_most = 100, .hide_default = true});
  v.field("sigma", o.sigma, "of `log_normal`: deviation of the logarithm",
          {.above = 0, .at_most = 10, .hide_default = true, .otherwise = "required there"});
  v.field("phases", o.phases, "of `hyperexponential`, instead of a mean", {.hide_default = true});
  v.field("at_most", o.at_most, "longer ones are cut to this; 0: none", {.hide_default = true});
}

template <class V>
void describe(V& v, diurnal_options& o) {
  v.field("amplitude", o.amplitude,
          "hosts come back `1 + amplitude` times as fast at the peak, `1 - amplitude` twelve hours "
          "later",
          {.at_least = 0, .at_most = 1, .fraction = true});
  v.field("peak", o.peak, "local time of day", {.below = 86400});
  v.field("time_zone", o.time_zone,
          "`+3h`: local time is ahead of UTC; the run begins at midnight UTC");
}

template <class V>
void describe(V& v, outage_options& o) {
  v.field("every", o.every, "time from the end of one to the next");
  v.field("lasting", o.lasting, "how long one is");
  v.field("share", o.share, "hosts that one takes away, each with this probability",
          {.above = 0, .at_most = 1, .fraction = true});
}

template <class V>
void describe(V& v, churn_options& o) {
  v.field("preset", o.preset, "a measured population, for whatever of the following is not given",
          {.hide_default = true, .one_of = churn_preset_names});
  v.field("session", o.session,
          "how long a host stays, at least 1ms; the first session begins at `start`",
          {.hide_default = true});
  v.field("gap", o.gap, "how long it is away; `always`: it does not come back",
          {.hide_default = true});
  v.field("stationary", o.stationary,
          "a host begins in the middle of a session or a gap, as if it had always come and gone",
          {.hide_default = true});
  v.field("diurnal", o.diurnal, "gaps pass faster at one time of day", {.hide_default = true});
  v.field("outages", o.outages, "what takes a part of the group away at once, and brings it back",
          {.hide_default = true});
  v.field("trace", o.trace,
          "file instead of `session` and `gap`, relative to the scenario's folder; a glob: one "
          "file for each host or more. "
          "Times count from the host's `start`. `shoal trace info FILE` shows what it holds");
  v.field("format", o.format,
          "of the trace: `csv`: rows `peer,start,end`; `fta`: Failure Trace Archive's event_trace; "
          "`simgrid`: a host's profile; "
          "`counts`: `time,count`; `events`: JSON lines that add and remove nodes; `peers`: "
          "`peers.csv` of an earlier run",
          {.hide_default = true});
  v.field("time_unit", o.unit,
          "of times without one; `format`: milliseconds in `events`, else seconds",
          {.hide_default = true});
  v.field("match", o.match,
          "`name`: hosts are called as the trace's peers; `order`: the n-th peer of the trace is "
          "the n-th host of the "
          "groups that use it; `format`: `name` for `csv` and `peers`, else `order`",
          {.hide_default = true});
  v.field("offset", o.offset, "a host's `start` is this far into the trace",
          {.hide_default = true});
  v.field("speed", o.speed, "10: the trace passes ten times as fast",
          {.above = 0, .at_most = 1e6, .hide_default = true});
  v.field("loop", o.loop, "the trace begins again after its end", {.hide_default = true});
  v.field("ending", o.ending,
          "how a session ends: `process`: its connections are reset; `machine`: it falls silent, "
          "as a closed laptop does",
          {.hide_default = true});
}

} // namespace shoal::scenarios
