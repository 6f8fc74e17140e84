#include "tools/python/run_tables.hpp"

#include "kernels/base/text_fields.hpp"
#include "scenarios/observe/metrics.hpp"

#include <initializer_list>
#include <limits>
#include <utility>

namespace shoal::python {

namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

enum table_index : std::size_t {
  metrics_table,
  epochs_table,
  rounds_table,
  member_rounds_table,
  contributions_table,
  peers_table,
  phases_table,
  faults_table,
  transfers_table,
  traffic_table
};

enum class kind { number, count, word };

table make(std::string name, std::initializer_list<std::pair<const char*, kind>> columns) {
  table out{std::move(name), {}};
  for (const auto& [column, sort] : columns) {
    auto& made = out.columns.emplace_back();
    made.name = column;
    if (sort == kind::count) made.values = std::vector<std::uint64_t>{};
    if (sort == kind::word) made.values = words{};
  }
  return out;
}

std::vector<table> empty_tables() {
  using enum kind;
  table metrics{"metrics", {}};
  for (const auto& each : scenarios::metric_definitions())
    if (!each.column.empty())
      metrics.columns.push_back({std::string(each.column), std::vector<double>{}});
  return {
      std::move(metrics),
      make("epochs", {{"epoch", number},
                      {"reached_s", number},
                      {"samples", number},
                      {"loss_train", number},
                      {"loss_held_out", number}}),
      make("rounds", {{"epoch", count},
                      {"group", word},
                      {"started_s", number},
                      {"ended_s", number},
                      {"members", count},
                      {"outcome", word},
                      {"reason", word},
                      {"first_of_two", count},
                      {"samples", count}}),
      make("member_rounds", {{"time_s", number},
                             {"host", word},
                             {"group", word},
                             {"epoch", count},
                             {"outcome", word},
                             {"reason", word}}),
      make("contributions",
           {{"time_s", number}, {"host", word}, {"samples", count}, {"loss_train", number}}),
      make("peers", {{"host", word}, {"started_s", number}, {"ended_s", number}, {"reason", word}}),
      make("phases", {{"time_s", number}, {"host", word}, {"phase", word}}),
      make("faults", {{"time_s", number},
                      {"fault", count},
                      {"action", word},
                      {"begins", count},
                      {"hosts", word}}),
      make("transfers", {{"transfer", count},
                         {"from", word},
                         {"to", word},
                         {"type", word},
                         {"bytes", count},
                         {"sent_s", number},
                         {"begun_s", number},
                         {"left_s", number},
                         {"arrives_s", number},
                         {"cut", count},
                         {"held_back_by", word},
                         {"held_back_s", number}}),
      make("traffic", {{"host", word},
                       {"region", word},
                       {"to_region", word},
                       {"data", count},
                       {"averaging", count},
                       {"state", count},
                       {"control", count}}),
  };
}

/// Appends the numbers of a line of CSV. A field that is empty or missing is unknown.
void add_csv(std::string_view line, table& to) {
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  auto fields = split(line, ',');
  fields.resize(to.columns.size());
  for (std::size_t i = 0; i < fields.size(); ++i)
    std::get<std::vector<double>>(to.columns[i].values)
        .push_back(number_of<double>(fields[i]).value_or(unknown));
}

} // namespace

void words::add(std::string_view word) {
  const auto [found, fresh] =
      index_.try_emplace(std::string(word), static_cast<std::uint32_t>(names.size()));
  if (fresh) names.emplace_back(word);
  codes.push_back(found->second);
}

struct run_tables::row {
  table& in;
  std::size_t at = 0;

  row& operator<<(duration value) { return *this << to_seconds(value); }
  row& operator<<(double value) {
    std::get<std::vector<double>>(in.columns[at++].values).push_back(value);
    return *this;
  }
  row& operator<<(std::uint64_t value) {
    std::get<std::vector<std::uint64_t>>(in.columns[at++].values).push_back(value);
    return *this;
  }
  row& operator<<(std::string_view value) {
    std::get<words>(in.columns[at++].values).add(value);
    return *this;
  }
};

run_tables::row run_tables::to(std::size_t which) {
  return {tables_[which]};
}

run_tables::run_tables(std::uint64_t most_transfers, scenarios::run_listener* other)
    : most_transfers_(most_transfers), other_(other), tables_(empty_tables()) {}

std::vector<table> run_tables::take() {
  alive_.clear();
  return std::exchange(tables_, empty_tables());
}

void run_tables::begun(std::string_view run_yaml) {
  if (other_ != nullptr) other_->begun(run_yaml);
}

void run_tables::metrics_row(std::string_view row) {
  if (other_ != nullptr) other_->metrics_row(row);
  add_csv(row, tables_[metrics_table]);
}

void run_tables::epoch_rows(std::string_view rows) {
  if (other_ != nullptr) other_->epoch_rows(rows);
  while (!rows.empty()) {
    const auto end = rows.find('\n');
    if (end != 0) add_csv(rows.substr(0, end), tables_[epochs_table]);
    rows = end == std::string_view::npos ? std::string_view{} : rows.substr(end + 1);
  }
}

void run_tables::host_started(duration time, std::string_view host) {
  if (other_ != nullptr) other_->host_started(time, host);
  auto& started = std::get<std::vector<double>>(tables_[peers_table].columns[1].values);
  alive_[std::string(host)] = started.size();
  to(peers_table) << host << time << unknown << std::string_view{};
}

void run_tables::host_ended(duration time, std::string_view host, std::string_view reason) {
  if (other_ != nullptr) other_->host_ended(time, host, reason);
  const auto found = alive_.find(host);
  if (found == alive_.end()) return;
  auto& columns = tables_[peers_table].columns;
  std::get<std::vector<double>>(columns[2].values)[found->second] = to_seconds(time);
  auto& reasons = std::get<words>(columns[3].values);
  reasons.add(reason);
  const auto code = reasons.codes.back();
  reasons.codes.pop_back();
  reasons.codes[found->second] = code;
  alive_.erase(found);
}

void run_tables::phase(duration time, std::string_view host, std::string_view phase) {
  if (other_ != nullptr) other_->phase(time, host, phase);
  to(phases_table) << time << host << phase;
}

void run_tables::round_ended(duration time, const scenarios::heard_end& what) {
  if (other_ != nullptr) other_->round_ended(time, what);
  to(member_rounds_table) << time << what.host << what.group << what.epoch << what.outcome
                          << what.reason;
}

void run_tables::round(const scenarios::heard_round& what) {
  if (other_ != nullptr) other_->round(what);
  to(rounds_table) << what.epoch << what.group << what.started << what.ended << what.members
                   << what.outcome << what.reason << std::uint64_t{what.first_of_two}
                   << what.samples;
}

void run_tables::contribution(duration time, std::string_view host, std::uint64_t samples,
                              double loss) {
  if (other_ != nullptr) other_->contribution(time, host, samples, loss);
  to(contributions_table) << time << host << samples << loss;
}

void run_tables::fault(duration time, std::uint64_t number, std::string_view action, bool begins,
                       std::span<const std::string> hosts) {
  if (other_ != nullptr) other_->fault(time, number, action, begins, hosts);
  std::string all;
  for (const auto& each : hosts) all += (all.empty() ? "" : " ") + each;
  to(faults_table) << time << number << action << std::uint64_t{begins} << std::string_view(all);
}

void run_tables::case_event(const scenarios::case_event& what) {
  if (other_ != nullptr) other_->case_event(what);
}

void run_tables::guarded_round(const scenarios::guarded_round& what) {
  if (other_ != nullptr) other_->guarded_round(what);
}

void run_tables::stage_held(duration time, std::string_view host,
                            std::optional<std::uint32_t> stage) {
  if (other_ != nullptr) other_->stage_held(time, host, stage);
}

void run_tables::stage_worked(duration time, const scenarios::heard_work& what) {
  if (other_ != nullptr) other_->stage_worked(time, what);
}

void run_tables::expert(duration time, const scenarios::heard_expert& what) {
  if (other_ != nullptr) other_->expert(time, what);
}

void run_tables::transfer(const scenarios::heard_transfer& what) {
  if (other_ != nullptr) other_->transfer(what);
  if (most_transfers_ == 0) return;
  --most_transfers_;
  to(transfers_table) << what.number << what.from << what.to << what.type << what.bytes << what.sent
                      << what.begun << what.left << what.arrives << std::uint64_t{what.cut}
                      << what.held_back_by << what.held_back;
}

bool run_tables::wants_traffic() {
  return other_ != nullptr && other_->wants_traffic();
}

void run_tables::traffic(std::span<const scenarios::sent_bytes> all) {
  if (other_ != nullptr) other_->traffic(all);
  tables_[traffic_table] = std::move(empty_tables()[traffic_table]);
  for (const auto& each : all) {
    auto row = to(traffic_table);
    row << each.host << each.region << each.to_region;
    for (const auto bytes : each.bytes) row << bytes;
  }
}

void run_tables::ended(std::string_view summary) {
  if (other_ != nullptr) other_->ended(summary);
}

} // namespace shoal::python
