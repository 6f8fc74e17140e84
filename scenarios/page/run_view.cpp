#include "scenarios/page/run_view.hpp"

#include "kernels/base/json_text.hpp"
#include "kernels/base/text_fields.hpp"
#include "scenarios/observe/metrics.hpp"
#include "scenarios/page/page_text.hpp"
#include "scenarios/page/run_view_state.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace shoal::scenarios {

namespace {

/// Limit on unfinished groups that keep members which have ended.
constexpr std::size_t most_open = 20'000;

bool formed(std::string_view group) {
  return group.find_first_not_of('0') != std::string_view::npos;
}

} // namespace

std::uint8_t outcome_number(std::string_view word) {
  const auto found = std::find(outcome_words.begin(), outcome_words.end(), word);
  return static_cast<std::uint8_t>(found == outcome_words.end() ? outcome_words.size() - 1
                                                                : found - outcome_words.begin());
}

std::uint32_t run_view::state::word_list::of(std::string_view word) {
  const auto found = numbers.find(word);
  if (found != numbers.end()) return found->second;
  const auto number = static_cast<std::uint32_t>(words.size());
  words.emplace_back(word);
  numbers.emplace(word, number);
  return number;
}

void run_view::state::reach(std::int64_t time) {
  for (unsigned i = axis.reach(time); i > 0; --i) {
    for (auto& [regions, bytes] : flows) bytes.widen();
    stages.widen();
    experts.widen();
    for (unit& one : units) {
      one.time.widen();
      one.loss.widen();
      one.bytes.widen();
    }
  }
}

std::uint32_t run_view::state::host_of(std::string_view name) {
  const std::size_t dash = name.rfind('-');
  if (dash != std::string_view::npos) {
    const std::string_view digits = name.substr(dash + 1);
    const auto number = number_of<std::uint64_t>(digits);
    const bool plain = number && (digits.size() == 1 || digits.front() != '0');
    if (const auto found = group_by_name.find(name.substr(0, dash));
        plain && found != group_by_name.end() && *number < groups[found->second].facts.count)
      return groups[found->second].first + static_cast<std::uint32_t>(*number);
  }
  const auto [at, fresh] = other_by_name.try_emplace(
      std::string(name), named_hosts + static_cast<std::uint32_t>(others.size()));
  if (fresh) others.emplace_back(name);
  return at->second;
}

run_view::state::host& run_view::state::at(std::uint32_t index) {
  if (index >= hosts.size()) hosts.resize(index + 1);
  host& out = hosts[index];
  if (!out.seen) {
    out.seen = true;
    ++unit_of(index).hosts;
  }
  return out;
}

std::uint32_t run_view::state::group_of(std::uint32_t index) const {
  if (index >= named_hosts) return static_cast<std::uint32_t>(groups.size() - 1);
  const auto after = std::upper_bound(groups.begin(), groups.end() - 1, index,
                                      [](std::uint32_t i, const group& g) { return i < g.first; });
  return static_cast<std::uint32_t>(after - groups.begin() - 1);
}

std::string run_view::state::name_of(std::uint32_t index) const {
  if (index >= named_hosts) return others[index - named_hosts];
  const group& in = groups[group_of(index)];
  return fmt::format("{}-{}", in.facts.name, index - in.first);
}

run_view::state::unit& run_view::state::unit_of(std::uint32_t index) {
  const std::size_t number =
      std::min<std::size_t>(single ? index : group_of(index), most_units - 1);
  if (number >= units.size()) units.resize(number + 1);
  return units[number];
}

std::string run_view::state::name_of_unit(std::size_t index) const {
  if (single) return name_of(static_cast<std::uint32_t>(index));
  return index < groups.size() ? groups[index].facts.name : "others";
}

struct run_view::state::seen_host {
  std::lock_guard<std::mutex> lock;
  state& s;
  const std::uint32_t index;
  host& who;

  seen_host(state& of, duration time, std::string_view name)
      : lock(of.guard), s((of.reach(time.count()), of)), index(of.host_of(name)),
        who(of.at(index)) {}
};

void run_view::state::leave_phase(host& of, std::uint32_t index, std::int64_t time) {
  if (of.phase >= 0 && time > of.since)
    unit_of(index).time.spread(axis, of.since, time, static_cast<std::size_t>(of.phase),
                               time - of.since);
  of.since = time;
}

/// Keeps the newest by time and name, so that the order of the calls does not matter.
void run_view::state::keep_latest(std::int64_t time, std::uint32_t host, std::string_view reason) {
  latest.emplace(time, host, reason);
  if (latest.size() > most_latest) latest.erase(latest.begin());
}

/// Accounts for phases in progress as if they ended now.
void run_view::state::settle() {
  for (std::uint32_t i = 0; i < hosts.size(); ++i)
    if (hosts[i].alive) leave_phase(hosts[i], i, axis.end());
  stages.settle(axis);
}

run_view::run_view() : state_(std::make_unique<state>()) {
  std::vector<thinned_rows::column> columns;
  for (const metric_definition& one : metric_definitions())
    if (!one.column.empty()) {
      const bool mean = one.id == metric::samples_per_second || one.id == metric::loss_train;
      columns.push_back({std::string(one.column), mean ? merge_rule::mean : merge_rule::last});
    }
  state_->series.set_columns(std::move(columns));
  state_->epochs.set_columns({{"epoch"},
                              {"time"},
                              {"samples", merge_rule::sum},
                              {"loss_train", merge_rule::mean},
                              {"loss_held_out"}});
}

run_view::~run_view() = default;

void run_view::begun(std::string_view run_yaml) {
  std::lock_guard lock(state_->guard);
  state& s = *state_;
  const bool again = !s.run_yaml.empty();
  s.run_yaml = run_yaml;
  s.facts = facts_of(run_yaml);
  if (again) return;
  const auto add = [&s](group_facts facts, bool peers) {
    s.group_by_name.emplace(facts.name, static_cast<std::uint32_t>(s.groups.size()));
    const auto& regions = s.facts.regions;
    const auto region = std::find(regions.begin(), regions.end(), facts.region) - regions.begin();
    s.groups.push_back(
        {std::move(facts), s.named_hosts, peers, static_cast<std::uint32_t>(region)});
    s.named_hosts += static_cast<std::uint32_t>(s.groups.back().facts.count);
  };
  for (const group_facts& facts : s.facts.groups) add(facts, true);
  s.single = s.named_hosts <= state::most_single_hosts;
  add({.name = "shard",
       .region = s.facts.shard_region,
       .device = {},
       .role = "data",
       .nat = "open",
       .count = s.facts.shards,
       .samples_per_second = 0,
       .up = s.facts.shard_up,
       .down = s.facts.shard_down},
      false);
  s.groups.push_back({{.name = "others",
                       .region = {},
                       .device = {},
                       .role = "other",
                       .nat = {},
                       .up = {},
                       .down = {}},
                      s.named_hosts,
                      false,
                      static_cast<std::uint32_t>(s.facts.regions.size())});
}

void run_view::metrics_row(std::string_view row) {
  std::lock_guard lock(state_->guard);
  state_->series.add(row);
  double time = 0;
  const auto [end, error] = std::from_chars(row.data(), row.data() + row.size(), time);
  if (error == std::errc{} && time >= 0 && time < 9e9) state_->reach(std::llround(time * 1e9));
}

void run_view::epoch_rows(std::string_view rows) {
  std::lock_guard lock(state_->guard);
  state_->epochs.add(rows);
}

void run_view::host_started(duration time, std::string_view host) {
  state::seen_host on(*state_, time, host);
  state::host& who = on.who;
  who.alive = true;
  who.born = who.since = time.count();
  who.phase = 0;
  ++who.lives;
  on.s.keep_latest(time.count(), on.index, {});
}

void run_view::host_ended(duration time, std::string_view host, std::string_view reason) {
  state::seen_host on(*state_, time, host);
  auto& [lock, s, index, who] = on;
  if (!who.alive) return;
  s.leave_phase(who, index, time.count());
  s.stages.gone(s.axis, time.count(), index);
  s.experts.gone(time.count(), index);
  who.alive = false;
  who.phase = -1;
  who.lived += time.count() - who.born;
  s.keep_latest(time.count(), index, reason);
  if (s.ends.size() < state::most_ends)
    s.ends.push_back({index, time.count(), std::string(reason)});
  else
    ++s.ends_left_out;
}

void run_view::phase(duration time, std::string_view host, std::string_view phase) {
  state::seen_host on(*state_, time, host);
  auto& [lock, s, index, who] = on;
  if (!who.alive) return;
  s.leave_phase(who, index, time.count());
  const auto found = std::find(session_states.begin(), session_states.end(), phase);
  who.phase =
      static_cast<std::int8_t>(found == session_states.end() ? -1 : found - session_states.begin());
}

void run_view::round_ended(duration time, const heard_end& what) {
  std::lock_guard lock(state_->guard);
  state& s = *state_;
  s.reach(time.count());
  if (!formed(what.group)) {
    if (what.reason == "none") return;
    state::attempt& of =
        s.attempts
            .try_emplace({what.epoch, std::string(what.reason)}, state::attempt{time.count(), 0, 0})
            .first->second;
    of.last = time.count();
    ++of.count;
    if (s.attempts.size() > state::most_attempts) s.attempts.erase(s.attempts.begin());
    return;
  }
  const auto [at, fresh] = s.open.try_emplace(std::string(what.group));
  at->second.push_back({s.host_of(what.host), outcome_number(what.outcome),
                        static_cast<std::uint16_t>(s.words.of(what.reason))});
  if (!fresh) return;
  s.open_order.push_back(at->first);
  while (s.open.size() > most_open) {
    s.open.erase(s.open_order.front());
    s.open_order.pop_front();
  }
  if (s.open_order.size() > 4 * most_open)
    std::erase_if(s.open_order, [&s](const std::string& group) { return !s.open.contains(group); });
}

void run_view::state::drop_unless_kept(std::uint64_t number) {
  const auto found = kept.find(number);
  if (found == kept.end()) return;
  const std::int64_t seconds = found->second.what.ended - found->second.what.started;
  const bool in = std::find(last_rounds.begin(), last_rounds.end(), number) != last_rounds.end() ||
                  std::find(bad_rounds.begin(), bad_rounds.end(), number) != bad_rounds.end() ||
                  slow_rounds.contains({seconds, number});
  if (!in) kept.erase(found);
}

void run_view::round(const heard_round& what) {
  std::lock_guard lock(state_->guard);
  state& s = *state_;
  s.reach(what.ended.count());
  state::kept_round round;
  // All members died before the round ended, so the time of its end is unknown.
  round.what = {s.rounds_seen++,
                what.started.count(),
                std::max(what.ended, what.started).count(),
                what.members,
                outcome_number(what.outcome),
                static_cast<std::uint16_t>(s.words.of(what.reason))};
  round.epoch = what.epoch;
  round.samples = what.samples;
  round.group = what.group;
  round.first_of_two = what.first_of_two;
  if (const auto found = s.open.find(what.group); found != s.open.end()) {
    round.members = std::move(found->second);
    s.open.erase(found);
  }
  const bool ok = is_ok(round.what.outcome);
  ++s.by_outcome[round.what.outcome];
  if (what.reason != "none") ++s.by_reason[std::string(what.reason)];

  std::vector<state::point>& points = ok ? s.ok_points : s.bad_points;
  std::uint64_t& stride = ok ? s.ok_stride : s.bad_stride;
  std::uint64_t& seen = ok ? s.ok_seen : s.bad_seen;
  if (seen++ % stride == 0) points.push_back(round.what);
  if (points.size() > state::most_points) {
    for (std::size_t i = 0; 2 * i < points.size(); ++i) points[i] = points[2 * i];
    points.resize((points.size() + 1) / 2);
    stride *= 2;
  }

  const std::uint64_t number = round.what.number;
  const std::int64_t took = round.what.ended - round.what.started;
  s.kept.emplace(number, std::move(round));
  std::vector<std::uint64_t> out;
  const auto push = [&out, number](std::deque<std::uint64_t>& into, std::size_t most) {
    into.push_back(number);
    if (into.size() > most) {
      out.push_back(into.front());
      into.pop_front();
    }
  };
  push(s.last_rounds, state::last_kept);
  if (!ok) push(s.bad_rounds, state::bad_kept);
  s.slow_rounds.insert({took, number});
  if (s.slow_rounds.size() > state::slowest_kept) {
    out.push_back(s.slow_rounds.begin()->second);
    s.slow_rounds.erase(s.slow_rounds.begin());
  }
  for (const std::uint64_t each : out) s.drop_unless_kept(each);
}

void run_view::contribution(duration time, std::string_view host, std::uint64_t samples,
                            double loss) {
  state::seen_host on(*state_, time, host);
  auto& [lock, s, index, who] = on;
  ++who.rounds;
  who.samples += samples;
  s.contributed_samples += samples;
  state::unit& of = s.unit_of(index);
  of.loss.add(s.axis, time.count(), 2, static_cast<std::int64_t>(samples));
  if (!std::isfinite(loss) || std::abs(loss) > 1e6) return;
  const auto count = static_cast<std::int64_t>(samples);
  const std::int64_t sum = std::llround(loss * 1e6) * count;
  who.loss += sum;
  who.loss_samples += count;
  of.loss.add(s.axis, time.count(), 0, sum);
  of.loss.add(s.axis, time.count(), 1, count);
}

void run_view::fault(duration time, std::uint64_t number, std::string_view action, bool begins,
                     std::span<const std::string> hosts) {
  std::lock_guard lock(state_->guard);
  state& s = *state_;
  s.reach(time.count());
  if (!begins) {
    if (const auto found = s.open_faults.find(number); found != s.open_faults.end()) {
      s.faults[found->second].end = time.count();
      s.open_faults.erase(found);
    }
    return;
  }
  if (s.faults.size() >= state::most_faults) {
    ++s.faults_left_out;
    return;
  }
  state::fault_span span{time.count(), -1, number, hosts.size(), std::string(action), {}};
  for (std::size_t i = 0; i < std::min<std::size_t>(hosts.size(), 8); ++i)
    span.names.push_back(hosts[i]);
  s.open_faults[number] = s.faults.size();
  s.faults.push_back(std::move(span));
}

void run_view::case_event(const scenarios::case_event& what) {
  std::lock_guard lock(state_->guard);
  state_->reach(what.at.count());
  state_->cases.add(what);
}

void run_view::guarded_round(const scenarios::guarded_round& what) {
  std::lock_guard lock(state_->guard);
  state_->reach(what.at.count());
  state_->guards.add(what);
}

void run_view::stage_held(duration time, std::string_view host,
                          std::optional<std::uint32_t> stage) {
  const state::seen_host seen(*state_, time, host);
  seen.s.stages.holds(seen.s.axis, time.count(), seen.index, stage);
}

void run_view::stage_worked(duration time, const heard_work& what) {
  const state::seen_host seen(*state_, time, what.host);
  seen.s.stages.worked(seen.s.axis, time.count(), what.stage, what.over.count(),
                       what.computed.count());
}

void run_view::expert(duration time, const heard_expert& what) {
  const state::seen_host seen(*state_, time, what.host);
  seen.s.experts.hears(seen.s.axis, time.count(), seen.index, what);
}

void run_view::transfer(const heard_transfer& what) {
  std::lock_guard lock(state_->guard);
  state& s = *state_;
  s.reach(what.left.count());
  if (s.transfers.size() >= state::most_transfers) {
    ++s.transfers_left_out;
    return;
  }
  state::transfer_row row{s.host_of(what.from), s.host_of(what.to)};
  row.type = static_cast<std::uint16_t>(s.words.of(what.type));
  row.number = what.number;
  row.bytes = what.bytes;
  row.sent = what.sent.count();
  row.begun = what.begun.count();
  row.left = what.left.count();
  row.arrives = what.arrives.count();
  row.why = s.words.of(what.held_back_by);
  row.held = what.held_back.count();
  row.cut = what.cut;
  s.transfers.push_back(row);
  if (what.cut) return;
  const auto bytes = static_cast<std::int64_t>(what.bytes);
  s.at(row.from);
  s.at(row.to);
  s.unit_of(row.from).bytes.spread(s.axis, row.begun, row.left, 0, bytes);
  s.unit_of(row.to).bytes.spread(s.axis, row.begun, row.left, 1, bytes);
  const std::size_t known = std::min(s.facts.regions.size(), state::most_regions);
  const std::uint32_t from = s.groups[s.group_of(row.from)].region,
                      to = s.groups[s.group_of(row.to)].region;
  if (from < known && to < known) s.flows[{from, to}].spread(s.axis, row.begun, row.left, 0, bytes);
}

bool run_view::wants_traffic() {
  std::lock_guard lock(state_->guard);
  return std::exchange(state_->traffic_wanted, false);
}

void run_view::traffic(std::span<const sent_bytes> all) {
  std::lock_guard lock(state_->guard);
  state& s = *state_;
  s.traffic_known = true;
  for (state::host& one : s.hosts) one.sent = {};
  s.region_bytes.clear();
  for (const sent_bytes& row : all) {
    state::host& from = s.at(s.host_of(row.host));
    for (std::size_t i = 0; i < row.bytes.size(); ++i) from.sent[i] += row.bytes[i];
    if (row.to_region.empty()) // the receiver is unknown
      continue;
    auto& pair = s.region_bytes[{std::string(row.region), std::string(row.to_region)}];
    for (std::size_t i = 0; i < row.bytes.size(); ++i) pair[i] += row.bytes[i];
  }
}

void run_view::ended(std::string_view summary) {
  std::lock_guard lock(state_->guard);
  const auto parsed = try_json<nlohmann::ordered_json>(summary);
  if (parsed.is_discarded()) return;
  state_->summary_json = json_text(parsed);
  state_->run_state = state_->facts.made_by.interrupted ? "interrupted" : "ended";
}

void run_view::note(std::string text) {
  std::lock_guard lock(state_->guard);
  state_->notes.push_back(std::move(text));
}

void run_view::pictures_from(std::filesystem::path folder) {
  std::lock_guard lock(state_->guard);
  state_->pictures = std::move(folder);
}

void run_view::set_nodes(std::vector<node> all) {
  std::lock_guard lock(state_->guard);
  state_->nodes = std::move(all);
}

void run_view::set_state(std::string state) {
  std::lock_guard lock(state_->guard);
  state_->run_state = std::move(state);
}

std::vector<run_view::section> run_view::sections() {
  std::lock_guard lock(state_->guard);
  state& s = *state_;
  s.traffic_wanted = true;
  s.settle();
  page_text yaml;
  yaml.text(s.run_yaml);
  std::vector<section> out{{"run", s.run_text()},
                           {"scenario", yaml.take()},
                           {"summary", s.summary_json.empty() ? "null" : s.summary_json},
                           {"series", s.series_text()},
                           {"epochs", s.epochs_text()},
                           {"sessions", s.sessions_text()},
                           {"participants", s.participants_text()},
                           {"rounds", s.rounds_text()},
                           {"faults", s.faults_text()},
                           {"cases", s.cases_text()},
                           {"guard", s.guard_text()},
                           {"traffic", s.traffic_text()},
                           {"links", s.links_text()},
                           {"flows", s.flows_text()},
                           {"growth", s.growth_text()},
                           {"latest", s.latest_text()}};
  if (!s.facts.shown.empty()) out.push_back({"pictures", s.pictures_text()});
  if (!s.stages.stages().empty()) out.push_back({"stages", s.stages_text()});
  if (!s.experts.all().empty()) out.push_back({"experts", s.experts_text()});
  if (s.nodes) out.push_back({"nodes", s.nodes_text()});
  return out;
}

std::string run_view::document() {
  return as_object(sections());
}

std::string place_text(const run_place& place) {
  const auto number = [](const std::optional<std::size_t>& run) {
    return run ? fmt::format("{}", *run) : std::string("null");
  };
  return fmt::format("\"title\":{},\"beside\":{},\"of\":{}", json_quoted(place.title),
                     number(place.beside), number(place.of));
}

std::string as_object(const std::vector<run_view::section>& sections) {
  page_text out;
  out.open('{');
  for (const run_view::section& one : sections) out.key(one.name).raw(one.json);
  out.close('}');
  return out.take();
}

} // namespace shoal::scenarios
