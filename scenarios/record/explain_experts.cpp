#include "scenarios/record/explain_experts.hpp"

#include "kernels/base/json_text.hpp"
#include "scenarios/record/run_files.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

namespace shoal::scenarios {

namespace {

struct batch {
  duration ended{}, queued{}, computing{};
  std::string host;
};

constexpr std::size_t most_batches = 64; // to search for the batch of a call, by expert

duration seconds_of(const nlohmann::json& line, const char* name) {
  return from_seconds(line.value(name, 0.0));
}

} // namespace

result<expert_steps> explain_experts(const std::filesystem::path& run, std::size_t most) {
  expert_steps out;
  std::map<std::pair<std::string, bool>, std::deque<batch>> batches;
  const auto on_batch = [&](const nlohmann::json& line) {
    auto& of = batches[{line.at("expert"), line.at("backward")}];
    of.push_back({duration{line.at("time_ns").get<std::int64_t>()}, seconds_of(line, "queued"),
                  seconds_of(line, "seconds"), line.at("host")});
    if (of.size() > most_batches) of.pop_front();
  };
  const auto on_step = [&](const nlohmann::json& line) {
    if (!line.contains("waiting_seconds")) return; // a log of version 0.2
    expert_step_facts step;
    step.trainer = line.at("host");
    step.step = line.at("step");
    step.ended = duration{line.at("time_ns").get<std::int64_t>()};
    step.lasted = seconds_of(line, "seconds");
    step.look_ups = seconds_of(line, "look_up_seconds");
    step.waiting = seconds_of(line, "waiting_seconds");
    step.call = seconds_of(line, "slowest_seconds");
    step.expert = line.value("slowest", std::string{});
    step.backward = line.value("slowest_backward", false);
    ++out.steps;
    out.lost += line.at("lost").get<std::uint64_t>();
    out.lasted += step.lasted;
    out.look_ups += step.look_ups;
    out.waiting += step.waiting;
    if (step.expert.empty() || (out.slowest.size() >= most && step.call <= out.slowest.back().call))
      return;
    const duration begun{line.value("slowest_began_ns", std::int64_t{0})};
    for (const auto& each : batches[{step.expert, step.backward}]) {
      if (each.ended < begun || each.ended > begun + step.call) continue;
      step.host = each.host;
      step.queued = each.queued;
      step.computing = each.computing;
    }
    out.slowest.push_back(std::move(step));
    std::stable_sort(out.slowest.begin(), out.slowest.end(),
                     [](const auto& a, const auto& b) { return a.call > b.call; });
    if (out.slowest.size() > most) out.slowest.pop_back();
  };
  const auto read =
      read_events(run, {"expert_batch_done", "expert_step"}, [&](const nlohmann::json& line) {
        if (line.at("what") == "expert_step")
          on_step(line);
        else
          on_batch(line);
      });
  if (!read) return failure{read.error()};
  if (out.steps == 0)
    return failure{
        fmt::format("'{}' has no steps of trainers of experts with the times of their calls: "
                    "record.events was none, or a version before 0.3 wrote the log",
                    run.string())};
  return out;
}

std::string to_text(const expert_steps& what) {
  const auto share = [&](duration part) {
    return what.lasted > duration{} ? 100 * to_seconds(part) / to_seconds(what.lasted) : 0;
  };
  std::string out =
      fmt::format("{} steps of trainers: look-ups {:.1f} % of their time, waiting for experts "
                  "{:.1f} %, the trunk and the rest {:.1f} %; {} calls without an answer\n",
                  what.steps, share(what.look_ups), share(what.waiting),
                  share(what.lasted - what.look_ups - what.waiting), what.lost);
  for (const auto& step : what.slowest) {
    out +=
        fmt::format("  {:>9.3f} s  {} step {}: {:.3f} s, look-ups {:.3f} s, experts {:.3f} s\n",
                    to_seconds(step.ended - step.lasted), step.trainer, step.step,
                    to_seconds(step.lasted), to_seconds(step.look_ups), to_seconds(step.waiting));
    out += fmt::format("      slowest call: expert {}, {}, {:.3f} s", step.expert,
                       step.backward ? "back" : "forward", to_seconds(step.call));
    if (step.host.empty())
      out += "; the log has no answer\n";
    else
      out += fmt::format(" = queue of {} {:.3f} s + computing {:.3f} s + network {:.3f} s\n",
                         step.host, to_seconds(step.queued), to_seconds(step.computing),
                         to_seconds(step.call - step.queued - step.computing));
  }
  return out;
}

std::string to_json(const expert_steps& what) {
  nlohmann::ordered_json out{{"steps", what.steps},
                             {"calls_lost", what.lost},
                             {"seconds", to_seconds(what.lasted)},
                             {"look_up_seconds", to_seconds(what.look_ups)},
                             {"waiting_seconds", to_seconds(what.waiting)},
                             {"slowest", nlohmann::ordered_json::array()}};
  for (const auto& step : what.slowest) {
    nlohmann::ordered_json one{{"trainer", step.trainer},
                               {"step", step.step},
                               {"begun_seconds", to_seconds(step.ended - step.lasted)},
                               {"lasted_seconds", to_seconds(step.lasted)},
                               {"look_up_seconds", to_seconds(step.look_ups)},
                               {"waiting_seconds", to_seconds(step.waiting)},
                               {"expert", step.expert},
                               {"backward", step.backward},
                               {"call_seconds", to_seconds(step.call)}};
    if (!step.host.empty()) {
      one["host"] = step.host;
      one["queue_seconds"] = to_seconds(step.queued);
      one["computing_seconds"] = to_seconds(step.computing);
    }
    out["slowest"].push_back(std::move(one));
  }
  return json_text(out, 2) + "\n";
}

} // namespace shoal::scenarios
