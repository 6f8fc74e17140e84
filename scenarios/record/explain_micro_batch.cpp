#include "scenarios/record/explain_micro_batch.hpp"

#include "kernels/base/json_text.hpp"
#include "kernels/base/text_fields.hpp"
#include "scenarios/record/run_files.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <utility>

namespace shoal::scenarios {

namespace {

/// The names of hosts by the ids of their peers in hexadecimal digits.
std::map<std::string, std::string> names_in(const std::filesystem::path& run) {
  std::map<std::string, std::string> out;
  each_row(run, "peers.csv", [&](const auto& fields, std::string_view) {
    if (fields.size() < 2) return;
    if (const auto id = number_of<std::uint64_t>(fields[0]); id && *id != 0)
      out[fmt::format("{:x}", *id)] = fields[1];
  });
  return out;
}

struct totals {
  duration computed{}, underway{}, rest{};
};

totals totals_of(const explained_micro_batch& of) {
  totals out;
  for (const auto& task : of.tasks) {
    out.computed += task.computed;
    out.underway += task.underway();
  }
  out.rest = of.done - of.begun - out.computed - out.underway;
  return out;
}

} // namespace

result<std::vector<explained_micro_batch>> explain_micro_batches(const std::filesystem::path& run,
                                                                 std::size_t most) {
  const auto names = names_in(run);
  std::vector<explained_micro_batch> out;
  const auto read = read_events(run, {"slowest_micro_batch"}, [&](const nlohmann::json& line) {
    explained_micro_batch one;
    one.trainer = line.at("host").get<std::string>();
    one.epoch = line.at("epoch").get<std::uint64_t>();
    one.number = line.at("number").get<std::uint64_t>();
    one.samples = line.at("samples").get<std::uint64_t>();
    one.begun = ns(line.at("begun_ns"));
    one.done = ns(line.at("done_ns"));
    for (const auto& each : line.at("tasks")) {
      explained_task task;
      task.hop = each.at("hop").get<std::uint32_t>();
      task.stage = each.at("stage").get<std::uint32_t>();
      task.backward = each.at("backward").get<bool>();
      const auto peer = each.at("peer").get<std::string>();
      const auto name = names.find(peer);
      task.host = name == names.end() ? "peer " + peer : name->second;
      task.sent = ns(each.at("sent_ns"));
      task.answered = ns(each.at("answered_ns"));
      task.computed = ns(each.at("computed_ns"));
      task.tries = each.at("tries").get<std::uint32_t>();
      one.tasks.push_back(std::move(task));
    }
    out.push_back(std::move(one));
  });
  if (!read) return failure{read.error()};
  if (out.empty())
    return failure{fmt::format("'{}' has no micro-batch to explain: its method is not 'pipeline', "
                               "or no batch has ended",
                               run.string())};
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    return a.done - a.begun > b.done - b.begun;
  });
  out.resize(std::min(out.size(), most));
  return out;
}

std::string to_text(const std::vector<explained_micro_batch>& all) {
  std::string out;
  for (const auto& one : all) {
    const auto whole = to_seconds(one.done - one.begun);
    const auto parts = totals_of(one);
    out +=
        fmt::format("{}micro-batch {} of {}, {} samples of batch {}: {:.3f} s, from {:.3f} s on\n",
                    out.empty() ? "" : "\n", one.number, one.trainer, one.samples, one.epoch, whole,
                    to_seconds(one.begun));
    const auto share = [&](duration part) { return 100 * to_seconds(part) / whole; };
    out += fmt::format("  computing {:.0f} %, lines and queues {:.0f} %, other tries and counts "
                       "{:.0f} %\n",
                       share(parts.computed), share(parts.underway), share(parts.rest));
    out += fmt::format("  {:>3} {:>5} {:<8} {:<16} {:>10} {:>10} {:>10} {:>6}\n", "hop", "stage",
                       "", "host", "sent s", "computing", "under way", "tries");
    for (const auto& task : one.tasks)
      out += fmt::format("  {:>3} {:>5} {:<8} {:<16} {:>10.3f} {:>10.3f} {:>10.3f} {:>6}\n",
                         task.hop, task.stage, task.backward ? "backward" : "forward", task.host,
                         to_seconds(task.sent), to_seconds(task.computed),
                         to_seconds(task.underway()), task.tries);
  }
  return out;
}

std::string to_json(const std::vector<explained_micro_batch>& all) {
  auto out = nlohmann::ordered_json::array();
  for (const auto& one : all) {
    auto tasks = nlohmann::ordered_json::array();
    for (const auto& task : one.tasks)
      tasks.push_back({{"hop", task.hop},
                       {"stage", task.stage},
                       {"backward", task.backward},
                       {"host", task.host},
                       {"sent_seconds", to_seconds(task.sent)},
                       {"answered_seconds", to_seconds(task.answered)},
                       {"computed_seconds", to_seconds(task.computed)},
                       {"tries", task.tries}});
    out.push_back({{"trainer", one.trainer},
                   {"epoch", one.epoch},
                   {"number", one.number},
                   {"samples", one.samples},
                   {"begun_seconds", to_seconds(one.begun)},
                   {"done_seconds", to_seconds(one.done)},
                   {"tasks", std::move(tasks)}});
  }
  return json_text(out, 2) + "\n";
}

} // namespace shoal::scenarios
