#include "scenarios/schema/new_scenario.hpp"

#include "kernels/base/text_fields.hpp"
#include "scenarios/schema/questions.hpp"
#include "scenarios/schema/values.hpp"
#include "scenarios/workloads/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <istream>
#include <ostream>

namespace shoal::scenarios {

namespace {

constexpr std::array churn_names{std::pair{churn_level::none, "none"},
                                 std::pair{churn_level::some, "some"},
                                 std::pair{churn_level::heavy, "heavy"}};

// Two kinds of volunteers. With four peers or more, a quarter are fast.
constexpr double slow_rate = 8, fast_rate = 24; // samples a second

template <class Names>
auto parse_word(const std::string& word, const Names& names)
    -> result<std::decay_t<decltype(names[0].first)>> {
  std::string known;
  for (const auto& [value, name] : names) {
    if (word == name) return value;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", name);
  }
  return failure{fmt::format("'{}' is none of {}", word, known)};
}

std::string churn_lines(churn_level level, duration length) {
  if (level == churn_level::none)
    return "    # Volunteers who come and go:\n"
           "    # churn: {session: {distribution: weibull, mean: 5min, shape: 0.7}, gap: "
           "{distribution: exponential, mean: 30s}}\n";
  const bool heavy = level == churn_level::heavy;
  return fmt::format(
      "    churn:               # they come and go: many short stays, a few very long ones\n"
      "      session: {{distribution: weibull, mean: {}, shape: 0.7}}\n"
      "      gap: {{distribution: exponential, mean: {}}}\n",
      to_string(heavy ? length / 4 : length * 2), to_string(length / (heavy ? 20 : 10)));
}

const workload_definition& workload_of(const new_scenario& what) {
  return what.workload != nullptr ? *what.workload : workloads().standard();
}

std::string workload_lines(const new_scenario& what, std::uint64_t batch) {
  const workload_definition& work = workload_of(what);
  std::string out;
  if (work.learns_text)
    out += "data:\n"
           "  files: [/usr/share/common-licenses/*]   # any text: the model learns to write it\n"
           "  holdout: 10%           # the last part of each file measures the loss\n\n";
  out += fmt::format("workload:\n  kind: {:<16} # {}\n{}", work.name, work.starter.comment,
                     work.starter.options);
  out += fmt::format("\ntraining:\n"
                     "  target_batch: {:<8} # samples that the whole swarm gathers for one step: "
                     "about ten seconds' worth\n"
                     "  micro_batch: {}\n"
                     "  optimizer: {}\n",
                     batch, std::min<std::uint64_t>(4, batch), work.starter.optimizer);
  return out;
}

} // namespace

result<const workload_definition*> parse_workload(const std::string& name) {
  if (const auto* found = workloads().find(name)) return found;
  return failure{fmt::format("'{}' is none of {}", name, fmt::join(workloads().names(), ", "))};
}

result<churn_level> parse_churn(const std::string& word) {
  return parse_word(word, churn_names);
}

result<std::uint64_t> parse_count(const std::string& text, std::uint64_t most) {
  const auto out = number_of<std::uint64_t>(text);
  if (!out || *out < 1 || *out > most)
    return failure{fmt::format("'{}' is no whole number from 1 to {}", text, most)};
  return *out;
}

std::string to_yaml(const new_scenario& what) {
  const std::uint64_t fast = what.peers < 4 ? 0 : what.peers / 4, slow = what.peers - fast;
  const duration length = std::chrono::minutes(what.minutes);
  const double rate = static_cast<double>(slow) * slow_rate + static_cast<double>(fast) * fast_rate;
  const auto batch = static_cast<std::uint64_t>(rate * 10);
  // All peers start within the first twentieth of the run.
  const duration spacing = std::min<duration>(std::chrono::milliseconds(250),
                                              length / 20 / static_cast<std::int64_t>(what.peers));
  std::string out = fmt::format(
      "# A scenario for Shoal. Every option, with its default: docs/scenario.md\n"
      "#   shoal check {0}.yaml            is it right? --show prints every option with its value\n"
      "#   shoal run {0}.yaml --out DIR    runs it and leaves everything in DIR\n"
      "# Any option can be changed from the command line: --set peers.home.count=12\n\n"
      "name: {3}\n"
      "seed: 1                  # the same seed gives the same history, to the last message\n"
      "stop_time: {1:<13} # virtual time\n\n"
      "network:\n"
      "  regions: [eu, us]\n"
      "  links:                 # one way; a round trip takes twice as long\n"
      "    - {{from: eu, to: eu, delay: 20ms, jitter: 4ms}}\n"
      "    - {{from: us, to: us, delay: 25ms, jitter: 5ms}}\n"
      "    - {{from: eu, to: us, delay: 50ms, jitter: 5ms}}\n\n"
      "devices:                 # how fast each class goes forward and backward through samples\n"
      "  laptop: {{samples_per_second: {2}, jitter: 10%, step_time: 60ms}}\n",
      what.name, to_string(length), slow_rate, quoted(what.name));
  if (fast > 0)
    out += fmt::format("  workstation: {{samples_per_second: {}, jitter: 5%, step_time: 15ms}}\n",
                       fast_rate);
  const std::string start =
      spacing > duration::zero()
          ? fmt::format("    start_spacing: {:<5} # each starts this much after the one before\n",
                        to_string(spacing))
          : "";
  out += fmt::format("\npeers:                   # hosts are named home-0, home-1, ...\n"
                     "  home:\n"
                     "    count: {}\n"
                     "    region: eu\n"
                     "    down: 50Mbit\n"
                     "    up: 10Mbit           # the slowest uplink sets the pace of a round\n"
                     "    device: laptop\n{}{}",
                     slow, start, churn_lines(what.churn, length));
  if (fast > 0)
    out += fmt::format("  fibre:\n"
                       "    count: {}\n"
                       "    region: us\n"
                       "    down: 200Mbit\n"
                       "    up: 100Mbit\n"
                       "    device: workstation\n",
                       fast);
  out += "\n" + workload_lines(what, batch);
  out +=
      "\naveraging:               # everyone in a group gets the mean of its members' gradients\n"
      "  group_size: " +
      std::to_string(std::max<std::uint64_t>(256, what.peers)) +
      "\n"
      "  matchmaking_time: 5s\n"
      "  round_timeout: 1min\n"
      "  sender_timeout: 8s     # a member that is silent this long is left out\n\n"
      "# What goes wrong, and when. Probes such as all_reduce.half_sent are listed in "
      "docs/scenario.md.\n"
      "# faults:\n"
      "#   - {kill: process, select: home-0, on: all_reduce.half_sent, nth: 3}\n"
      "#   - {restart: machine, select: \"home-*\", at: 90s, downtime: 20s}\n\n"
      "record:\n"
      "  events: rounds         # `all` records each message for `shoal diff`\n\n"
      "# A run that misses one of these ends with exit status 3.\n"
      "# expect:\n"
      "#   rounds.failed: {max: 5}\n";
  return out;
}

new_scenario with_defaults(const std::string& name, const new_scenario_wishes& wishes) {
  new_scenario out;
  out.name = name;
  out.peers = wishes.peers.value_or(out.peers);
  out.minutes = wishes.minutes.value_or(out.minutes);
  out.workload = wishes.workload.value_or(out.workload);
  out.churn = wishes.churn.value_or(out.churn);
  return out;
}

result<new_scenario> ask(const std::string& name, const new_scenario_wishes& wishes,
                         std::istream& in, std::ostream& out) {
  new_scenario made = with_defaults(name, wishes);
  const auto churn_name =
      std::find_if(churn_names.begin(), churn_names.end(), [&](const auto& item) {
        return item.first == made.churn;
      })->second;
  result<void> done;
  if (!wishes.peers)
    done = ask_one(
        "How many peers?", std::to_string(made.peers), made.peers,
        [](const std::string& text) { return parse_count(text, most_new_peers); }, in, out);
  if (done && !wishes.workload)
    done = ask_one(fmt::format("What is trained: {}?", fmt::join(workloads().names(), ", ")),
                   workload_of(made).name, made.workload, parse_workload, in, out);
  if (done && !wishes.churn)
    done = ask_one("Do peers come and go: none, some or heavy?", churn_name, made.churn,
                   parse_churn, in, out);
  if (done && !wishes.minutes)
    done = ask_one(
        "How many minutes of virtual time?", std::to_string(made.minutes), made.minutes,
        [](const std::string& text) { return parse_count(text, most_new_minutes); }, in, out);
  if (!done) return failure{done.error()};
  return made;
}

std::optional<std::string> name_error(const std::string& name) {
  if (name.empty()) return "a scenario needs a name";
  for (const char c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
          c == '-' || c == '.'))
      return fmt::format("'{}' cannot name a scenario: use letters, digits, '_', '-' and '.'",
                         name);
  const bool letter =
      (name[0] >= 'a' && name[0] <= 'z') || (name[0] >= 'A' && name[0] <= 'Z') || name[0] == '_';
  if (!letter)
    return fmt::format("'{}' cannot name a scenario: it has to begin with a letter", name);
  return std::nullopt;
}

} // namespace shoal::scenarios
