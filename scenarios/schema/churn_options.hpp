// What a scenario says of how the hosts of a group come and go: part of scenario.hpp.
#pragma once

#include "kernels/base/units.hpp"
#include "netem/trace_formats.hpp"
#include "scenarios/schema/fault.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace shoal::scenarios {

using namespace std::chrono_literals;

enum class distribution_kind { always, exponential, weibull, log_normal, gamma, hyperexponential };

struct lifetime_phase {
  double weight = 1;
  duration mean{}; ///< required, > 0
  bool operator==(const lifetime_phase&) const = default;
};

/// How long something lasts: netem/distributions.hpp.
struct lifetime_options {
  distribution_kind distribution = distribution_kind::always; ///< always: it never ends
  duration mean{};                                            ///< or one of the next two, > 0
  duration median{};                                          ///< log_normal
  duration scale{};                                           ///< weibull and gamma
  double shape = 1; ///< weibull and gamma, [0.1, 100]; below 1: many short, few very long
  double sigma = 0; ///< log_normal, > 0
  std::vector<lifetime_phase> phases; ///< hyperexponential
  duration at_most{};                 ///< longer ones are cut; 0: none
  bool operator==(const lifetime_options&) const = default;
};

/// A signed duration: '+3h', '-5h', '5h30min' is '+5.5h'.
struct time_offset {
  duration ahead{};
  bool operator==(const time_offset&) const = default;
};

/// Hosts come back more often at one time of day.
struct diurnal_options {
  double amplitude = 0;  ///< 0: they do not
  duration peak = 20h;   ///< local time
  time_offset time_zone; ///< the run begins at midnight UTC
  bool operator==(const diurnal_options&) const = default;
};

/// What takes a part of the group away together.
struct outage_options {
  lifetime_options every, lasting;
  double share = 1;
  bool operator==(const outage_options&) const = default;
};

enum class time_unit { as_format, ms, s, min, h };
enum class trace_match { as_format, name, order };
enum class trace_format_choice { detect, csv, fta, simgrid, counts, events, peers };

/// How the hosts of a group come and go of their own accord, from their `start` on. Either
/// processes or a trace.
struct churn_options {
  std::string preset;       ///< for what follows and is not given: churn_presets.hpp
  lifetime_options session; ///< how long a host stays
  lifetime_options gap;     ///< how long it is away; always: it does not come back
  bool stationary = false;  ///< a host may begin in the middle of a session or a gap
  diurnal_options diurnal;
  outage_options outages;
  std::string trace; ///< a file, or a glob, as data.files relative to the scenario's folder
  trace_format_choice format = trace_format_choice::detect;
  time_unit unit = time_unit::as_format;      ///< of the trace's times without one
  trace_match match = trace_match::as_format; ///< which peer of the trace a host plays
  duration offset{};                          ///< the host's `start` is here in the trace
  double speed = 1;
  bool loop = false;
  fault_scope ending{}; ///< how a session ends: process
  bool operator==(const churn_options&) const = default;
};

/// Whether they come and go at all.
bool churns(const churn_options& what);

} // namespace shoal::scenarios
