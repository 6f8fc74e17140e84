#include "scenarios/page/run_reader.hpp"

#include "kernels/base/text_fields.hpp"
#include "scenarios/observe/case_book.hpp"
#include "scenarios/observe/guard_book.hpp"
#include "scenarios/observe/output_text.hpp"
#include "scenarios/observe/run_directory.hpp"
#include "scenarios/page/run_facts.hpp"
#include "scenarios/record/run_files.hpp"
#include "scenarios/record/study_directory.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>

namespace shoal::scenarios {

namespace {

namespace fs = std::filesystem;
using json = nlohmann::json;

std::string_view host_of(std::string_view actor) {
  return actor.substr(0, actor.find('#'));
}

/// The begin or end of a host's life.
struct turn {
  duration time{};
  bool begins = false;
  std::string host, reason;
};

std::optional<std::vector<turn>> read_lives(const fs::path& directory) {
  std::vector<turn> out;
  const bool found = each_row(directory, "peers.csv", [&](const auto& fields, std::string_view) {
    if (fields.size() < 7) return;
    const auto at = [](std::string_view seconds) {
      return from_seconds(number_of<double>(seconds).value_or(0));
    };
    out.push_back({at(fields[4]), true, std::string(fields[1]), {}});
    if (!fields[5].empty())
      out.push_back({at(fields[5]), false, std::string(fields[1]), std::string(fields[6])});
  });
  if (!found) return std::nullopt;
  std::stable_sort(out.begin(), out.end(), [](const turn& a, const turn& b) {
    return std::pair{a.time, a.begins} < std::pair{b.time, b.begins};
  });
  return out;
}

result<void> read_transfers(const fs::path& directory, run_listener& into) {
  const auto read = read_json_lines(directory, "transfers.jsonl.zst", {}, [&](const json& line) {
    const std::string from = line.at("from"), to = line.at("to"), type = line.at("type");
    heard_transfer out{line.at("transfer"),
                       host_of(from),
                       host_of(to),
                       type,
                       line.at("bytes"),
                       ns(line.at("sent_ns")),
                       ns(line.at("begun_ns")),
                       ns(line.at("left_ns")),
                       ns(line.at("arrives_ns")),
                       line.at("cut"),
                       {},
                       {}};
    std::vector<std::pair<std::string, duration>> limits;
    const json& steps = line.at("steps");
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const std::string kind = steps[i].at(2);
      const std::string why =
          kind == "link" ? steps[i].at(3).get<std::string>() : limit_in_words(kind);
      const duration end =
          i + 1 < steps.size() ? std::min(ns(steps[i + 1].at(0)), out.left) : out.left;
      const duration held = end - std::max(ns(steps[i].at(0)), out.begun);
      const auto same = std::find_if(limits.begin(), limits.end(),
                                     [&](const auto& one) { return one.first == why; });
      if (same != limits.end())
        same->second += held;
      else
        limits.emplace_back(why, held);
    }
    const auto longest =
        std::max_element(limits.begin(), limits.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (longest != limits.end()) {
      out.held_back_by = longest->first;
      out.held_back = longest->second;
    }
    into.transfer(out);
  });
  if (!read) return failure{read.error()};
  return {};
}

/// Reports a round from the log of a cluster's process, which has a single member.
void tell_own_round(const json& line, std::map<std::string, std::uint64_t>& contributed,
                    run_listener& into) {
  const std::string group = line.at("group"), outcome = line.at("outcome"),
                    reason = line.at("reason");
  if (group.find_first_not_of('0') == std::string::npos) return;
  heard_round round{group,
                    line.at("epoch"),
                    ns(line.at("started_ns")),
                    ns(line.at("time_ns")),
                    line.at("members"),
                    outcome,
                    reason,
                    false,
                    0};
  const auto& senders = line.at("senders");
  if (outcome != "failed" &&
      std::find(senders.begin(), senders.end(), line.at("member")) != senders.end())
    round.samples = contributed[group];
  contributed.erase(group);
  into.round(round);
}

void tell_of_experts(duration time, std::string_view what, const json& line, run_listener& into) {
  const std::string host = line.at("host");
  heard_expert out;
  out.host = host;
  if (what == "experts_copied") {
    out.what = heard_expert::news::copied;
    const std::vector<std::string> names = line.at("experts");
    const std::vector<std::uint64_t> steps = line.at("steps");
    for (std::size_t i = 0; i < std::min(names.size(), steps.size()); ++i) {
      out.expert = names[i];
      out.steps = steps[i];
      into.expert(time, out);
    }
    return;
  }
  const std::string name = line.at("expert");
  out.expert = name;
  // Logs of version 0.2 do not have the steps of a batch.
  out.steps = line.value("steps", std::uint64_t{0});
  if (what == "expert_held") {
    out.revived = line.at("revived");
  } else if (what == "expert_given_up") {
    out.what = heard_expert::news::given_up;
  } else {
    out.what = heard_expert::news::computed;
    out.requests = line.at("requests");
    out.rows = line.at("rows");
  }
  into.expert(time, out);
}

result<void> read_log(const fs::path& directory, bool local, run_listener& into,
                      const teller_of_notes& note) {
  const auto lives = read_lives(directory);
  std::size_t next = 0;
  const auto lives_until = [&](duration time) {
    for (; lives && next < lives->size() && (*lives)[next].time <= time; ++next) {
      const turn& one = (*lives)[next];
      if (one.begins)
        into.host_started(one.time, one.host);
      else
        into.host_ended(one.time, one.host, one.reason);
    }
  };
  if (!whole_or_partial(directory, "events.jsonl.zst")) {
    note("The run left no log of events: phases, rounds and faults are not known.");
    lives_until(duration::max());
    return {};
  }
  std::map<std::string, std::uint64_t> contributed;
  // The log has a round before the end of its last member. The run reported the round after that
  // end, so hold the round back until then.
  json held;
  const auto tell_held = [&] {
    if (held.is_null()) return;
    const std::string group = held.at("group"), outcome = held.at("outcome"),
                      reason = held.at("reason");
    into.round({group, held.at("epoch"), ns(held.at("started_ns")), ns(held.at("time_ns")),
                held.at("members"), outcome, reason, held.at("first_of_two"), held.at("samples")});
    held = nullptr;
  };
  const auto read = read_events(
      directory,
      {"host_started", "host_killed", "phase_changed", "round_ended", "round", "contributed",
       "fault_begins", "fault_ends", "stage_joined", "stage_left", "stage_worked", "expert_held",
       "expert_given_up", "expert_batch_done", "experts_copied"},
      [&](const json& line) {
        const std::string what = line.at("what");
        const duration time = ns(line.at("time_ns"));
        const bool last_end =
            what == "round_ended" && !held.is_null() && held.at("group") == line.at("group");
        if (!last_end) tell_held();
        if (what != "round") lives_until(time);
        if (what == "host_started" || what == "host_killed") {
          const std::string actor = line.at("host");
          const std::string_view host = host_of(actor);
          if (lives || host.starts_with("shard-") || host.starts_with("relay.")) return;
          if (what == "host_started")
            into.host_started(time, host);
          else
            into.host_ended(time, host, "killed");
        } else if (what == "phase_changed") {
          const std::string host = line.at("host"), phase = line.at("phase");
          if (phase == "gone" && !lives) into.host_ended(time, host, "left");
          into.phase(time, host, phase);
        } else if (what == "stage_joined") {
          into.stage_held(time, line.at("host").get<std::string>(),
                          line.at("stage").get<std::uint32_t>());
        } else if (what == "stage_left") {
          into.stage_held(time, line.at("host").get<std::string>(), std::nullopt);
        } else if (what == "stage_worked") {
          const std::string host = line.at("host");
          into.stage_worked(
              time, {host, line.at("stage"), ns(line.at("over_ns")), ns(line.at("computed_ns"))});
        } else if (what.starts_with("expert")) {
          tell_of_experts(time, what, line, into);
        } else if (what == "round_ended") {
          const std::string host = line.at("host"), group = line.at("group"),
                            outcome = line.at("outcome"), reason = line.at("reason");
          into.round_ended(time, {host, group, line.at("epoch"), outcome, reason});
          if (local) tell_own_round(line, contributed, into);
          tell_held();
        } else if (what == "round") {
          held = line;
        } else if (what == "contributed") {
          contributed[line.at("group").get<std::string>()] = line.at("samples");
        } else {
          const std::vector<std::string> hosts = line.at("hosts");
          into.fault(time, line.at("fault"), line.at("action").get<std::string>(),
                     what == "fault_begins", hosts);
        }
      });
  if (!read) return failure{read.error()};
  tell_held();
  lives_until(duration::max());
  return {};
}

/// Tells the lines of cases.jsonl. A run without cases has no such file.
void read_cases(const fs::path& directory, run_listener& into) {
  const auto file = whole_or_partial(directory, cases_file);
  if (!file) return;
  std::ifstream in(*file);
  for (std::string line; std::getline(in, line) && !in.eof();)
    if (const auto event = case_event_from(line)) into.case_event(*event);
}

/// Tells the lines of guard.jsonl. A run without a guard has no such file.
void read_guard(const fs::path& directory, run_listener& into) {
  const auto file = whole_or_partial(directory, guard_file);
  if (!file) return;
  std::ifstream in(*file);
  for (std::string line; std::getline(in, line) && !in.eof();)
    if (const auto round = guarded_round_from(line)) into.guarded_round(*round);
}

} // namespace

result<void> tell_directory(const fs::path& directory, const run_facts& facts, run_listener& into,
                            const teller_of_notes& note) {
  each_row(directory, "metrics.csv",
           [&](const auto&, std::string_view line) { into.metrics_row(line); });
  each_row(directory, "epochs.csv",
           [&](const auto&, std::string_view line) { into.epoch_rows(line); });
  if (facts.records_transfers && whole_or_partial(directory, "transfers.jsonl.zst"))
    if (auto read = read_transfers(directory, into); !read) return failure{read.error()};
  if (!facts.records_events)
    note("record.events is 'none': a report made from the directory has no phases, rounds and "
         "faults. The report that the run itself wrote has them.");
  if (auto read = read_log(directory, !facts.made_by.node.empty(), into, note); !read)
    return failure{read.error()};
  read_cases(directory, into);
  read_guard(directory, into);
  each_row(directory, "contributions.csv", [&](const auto& fields, std::string_view) {
    if (fields.size() >= 6)
      into.contribution(
          from_seconds(number_of<double>(fields[0]).value_or(0)), fields[3],
          number_of<std::uint64_t>(fields[4]).value_or(0),
          number_of<double>(fields[5]).value_or(std::numeric_limits<double>::quiet_NaN()));
  });
  std::vector<std::vector<std::string>> names;
  std::vector<std::array<std::uint64_t, 4>> bytes;
  const bool traffic =
      each_row(directory, "traffic.csv", [&](const auto& fields, std::string_view) {
        if (fields.size() < 7) return;
        names.push_back({std::string(fields[0]), std::string(fields[1]), std::string(fields[2])});
        auto& row = bytes.emplace_back();
        for (std::size_t i = 0; i < row.size(); ++i)
          row[i] = number_of<std::uint64_t>(fields[3 + i]).value_or(0);
      });
  if (traffic) {
    std::vector<sent_bytes> all;
    for (std::size_t i = 0; i < names.size(); ++i)
      all.push_back({names[i][0], names[i][1], names[i][2], bytes[i]});
    into.traffic(all);
  }
  return {};
}

result<std::unique_ptr<run_view>> read_run_view(const fs::path& directory) {
  if (auto run = require_history(directory, "page of a run"); !run) return failure{run.error()};
  auto yaml = read_file(directory / "run.yaml");
  if (!yaml && !whole_or_partial(directory, "metrics.csv"))
    return failure{fmt::format("there is no run in '{}': neither run.yaml nor metrics.csv",
                               directory.string())};
  auto out = std::make_unique<run_view>();
  const std::string text = yaml ? *yaml : std::string{};
  out->begun(text);
  out->pictures_from(directory / "checkpoints");
  if (!yaml) out->note("There is no run.yaml yet: it is written at the end of a run.");
  if (auto told = tell_directory(directory, facts_of(text), *out,
                                 [&out](std::string what) { out->note(std::move(what)); });
      !told)
    return failure{told.error()};
  if (const auto summary = read_file(directory / "summary.json"))
    out->ended(*summary);
  else
    out->set_state("unfinished");
  return out;
}

} // namespace shoal::scenarios
