// Options of the churn of a group: how its hosts leave and return. Part of scenario.hpp.
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

/// Distribution of the length of a session or gap: netem/distributions.hpp.
struct lifetime_options {
  distribution_kind distribution = distribution_kind::always; ///< always: no end
  duration mean{};   ///< one of mean, median and scale is set, > 0
  duration median{}; ///< log_normal
  duration scale{};  ///< weibull and gamma
  double shape = 1;  ///< weibull and gamma, [0.1, 100]; below 1: many short, few very long
  double sigma = 0;  ///< log_normal, > 0
  std::vector<lifetime_phase> phases; ///< hyperexponential
  duration at_most{};                 ///< upper limit, to which longer draws are cut; 0: no limit
  bool operator==(const lifetime_options&) const = default;
};

/// A signed duration such as '+3h' or '-5h'. '5h30min' equals '+5.5h'.
struct time_offset {
  duration ahead{};
  bool operator==(const time_offset&) const = default;
};

/// A daily cycle: hosts return more often at one time of day.
struct diurnal_options {
  double amplitude = 0;  ///< strength of the cycle; 0: no cycle
  duration peak = 20h;   ///< time of most returns, local time
  time_offset time_zone; ///< offset of local time; the run begins at midnight UTC
  bool operator==(const diurnal_options&) const = default;
};

/// Outages, each of which takes a part of the group away at once.
struct outage_options {
  lifetime_options every, lasting;
  double share = 1;
  bool operator==(const outage_options&) const = default;
};

enum class time_unit { as_format, ms, s, min, h };
enum class trace_match { as_format, name, order };
enum class trace_format_choice { detect, csv, fta, simgrid, counts, events, peers };

/// Churn of a group's hosts, from their `start` on. It follows either random processes or a trace.
struct churn_options {
  std::string preset;       ///< preset for the missing options: churn_presets.hpp
  lifetime_options session; ///< time that a host stays
  lifetime_options gap;     ///< time that a host is away; always: the host does not return
  bool stationary = false;  ///< a host may begin in the middle of a session or a gap
  diurnal_options diurnal;
  outage_options outages;
  std::string trace; ///< file or glob, relative to the scenario's folder
  trace_format_choice format = trace_format_choice::detect;
  time_unit unit = time_unit::as_format;      ///< unit of times in the trace that have no unit
  trace_match match = trace_match::as_format; ///< how hosts map to peers of the trace
  duration offset{};                          ///< time in the trace at the host's `start`
  double speed = 1;
  bool loop = false;
  fault_scope ending{}; ///< how a session ends; default: process
  bool operator==(const churn_options&) const = default;
};

/// True if the options describe any churn.
bool churns(const churn_options& what);

} // namespace shoal::scenarios
