#include "tools/ask_swarm.hpp"

#include "netem/wire/clean_text.hpp"
#include "netem/wire/send_control_request.hpp"

#include <fmt/format.h>

#include <future>
#include <utility>
#include <vector>

namespace shoal::tools {

namespace {

using netem::wire::address;
using scenarios::node_report;

constexpr std::size_t asked_at_once = 16;

/// The hosts that are listed, and those that do not answer. A host that lies about its neighbours
/// cannot keep the program busy for longer.
constexpr std::size_t most_hosts = 4096, most_without_answer = 128;

/// Makes all text of a report safe to print.
void clean(node_report& report) {
  using netem::wire::clean_text;
  for (auto* each : {&report.name, &report.scenario, &report.version, &report.role, &report.phase})
    *each = clean_text(*each);
  for (auto& each : report.last_rounds) {
    each.outcome = clean_text(each.outcome);
    each.reason = clean_text(each.reason);
  }
  for (auto& each : report.bans)
    for (auto* text : {&each.member, &each.name, &each.why, &each.since, &each.line})
      *text = clean_text(*text, 2000);
  for (auto& each : report.neighbours)
    for (auto* text : {&each.name, &each.address, &each.relay}) *text = clean_text(*text);
}

} // namespace

result<std::map<std::string, seen_host>>
ask_swarm(const address& join, const std::optional<netem::wire::credentials>& keys) {
  const auto ask = [&](const address& where) -> result<node_report> {
    auto answer =
        netem::wire::send_control_request(where, {}, keys ? keys->tls : nullptr,
                                          keys ? keys->admits : nullptr, "status", answer_timeout);
    if (!answer) return failure{answer.error()};
    auto report = scenarios::node_report_from_json(*answer);
    if (report) clean(*report);
    return report;
  };
  std::size_t without_answer = 0;
  std::map<std::string, seen_host> out;
  auto first = ask(join);
  if (!first) return failure{first.error()};
  const auto note = [&](node_report report, const std::string& where) {
    for (const auto& other : report.neighbours) {
      if (out.size() >= most_hosts && !out.contains(other.name)) continue;
      auto& host = out[other.name];
      if (host.where.empty()) host.where = other.address;
      if (host.known_from.empty()) host.known_from = report.name;
    }
    auto& self = out[report.name];
    self.where = where;
    self.says = std::move(report);
  };
  note(*std::move(first), join.text());
  for (;;) {
    std::vector<std::pair<std::string, std::future<result<node_report>>>> asked;
    for (auto& [name, host] : out) {
      if (without_answer >= most_without_answer) break;
      if (host.says || !host.why_not.empty() || host.where.empty() || asked.size() == asked_at_once)
        continue;
      const auto where = netem::wire::parse_address(host.where);
      if (!where)
        host.why_not = where.error();
      else
        asked.emplace_back(name, std::async(std::launch::async, ask, *where));
    }
    if (asked.empty()) return out;
    for (auto& [name, answer] : asked) {
      auto report = answer.get();
      without_answer += !report;
      if (report && report->name == name)
        note(*std::move(report), out[name].where);
      else
        out[name].why_not = report ? fmt::format("{} answers there", report->name) : report.error();
    }
  }
}

} // namespace shoal::tools
