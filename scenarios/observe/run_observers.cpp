#include "scenarios/observe/run_observers.hpp"

#include "actors/averaging/observations.hpp"
#include "actors/data/observations.hpp"
#include "actors/data/sample_ranges.hpp"
#include "actors/messages.hpp"
#include "actors/reachability/observations.hpp"
#include "actors/reasons.hpp"
#include "actors/training/observations.hpp"
#include "kernels/base/check.hpp"
#include "scenarios/observe/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace shoal::scenarios {

namespace {

/// Rows between two events that are far apart: more than these would say nothing new.
constexpr std::int64_t most_idle_rows = 1000;
constexpr duration day = std::chrono::hours(24);

invariant_options with_names(const observer_options& from,
                             std::function<std::string(actors::peer_id)> name_of) {
  invariant_options out = from.invariants;
  out.name_of = std::move(name_of);
  out.view = from.view;
  return out;
}

} // namespace

observer_options local_view_of(observer_options whole, std::optional<std::uint32_t> peer_machine) {
  whole.view = observed_view::local;
  whole.peer_machines.clear();
  if (peer_machine) whole.peer_machines.push_back(*peer_machine);
  whole.record.peers = 0;
  // Without its rounds a host's directory could not be put together with the others'.
  if (whole.record.events == event_detail::none) whole.record.events = event_detail::rounds;
  return whole;
}

run_observers::run_observers(observer_options options, const run_directory* directory)
    : options_(std::move(options)), directory_(directory), names_(options_.identify),
      history_(names_),
      invariants_(with_names(options_, [this](actors::peer_id peer) { return name_of(peer); })),
      rounds_([this](const swarm_round& what) { on_round(what); }, options_.round_grace,
              options_.view),
      epochs_(options_.view) {
  options_.record.metrics_interval = std::max(options_.record.metrics_interval, duration(1));
  if (options_.region_of && (directory_ != nullptr || options_.listener != nullptr))
    traffic_ = std::make_unique<traffic_table>(
        [](const char* type) { return static_cast<std::uint8_t>(actors::traffic_of(type)); });
}

run_observers::~run_observers() = default;

result<std::unique_ptr<run_observers>> run_observers::create(observer_options options,
                                                             const run_directory* directory) {
  std::unique_ptr<run_observers> out(new run_observers(std::move(options), directory));
  if (directory == nullptr) return out;
  auto csv = directory->open("metrics.csv");
  if (!csv) return failure{csv.error()};
  out->csv_ = std::move(*csv);
  out->csv_->write(metrics::csv_header());
  auto epochs = directory->open("epochs.csv");
  if (!epochs) return failure{epochs.error()};
  out->epochs_csv_ = std::move(*epochs);
  out->epochs_csv_->write(epoch_table::csv_header());
  auto contributions = directory->open("contributions.csv");
  if (!contributions) return failure{contributions.error()};
  out->contributions_csv_ = std::move(*contributions);
  out->contributions_csv_->write("time,epoch,peer,host,samples,loss_train\n");
  auto log = directory->open("events.jsonl.zst");
  if (!log) return failure{log.error()};
  const record_options& record = out->options_.record;
  const std::vector<std::uint32_t> sampled =
      sample_machines(out->options_.seed, out->options_.peer_machines, record.peers);
  const bool everyone = record.peers == 0 || sampled.size() == out->options_.peer_machines.size();
  out->log_ = std::make_unique<event_log>(std::move(*log), record.events, out->names_, everyone,
                                          sampled, out->options_.view);
  if (record.transfers > 0 && out->options_.link_name) {
    auto transfers = directory->open("transfers.jsonl.zst");
    if (!transfers) return failure{transfers.error()};
    out->transfers_ = std::make_unique<transfer_log>(std::move(*transfers), record.transfers,
                                                     out->names_, out->options_.link_name);
  }
  return out;
}

void run_observers::on_transfer(const netem::transfer_record& what) {
  if (transfers_) transfers_->on_transfer(what);
  if (options_.listener == nullptr || heard_transfers_ >= options_.record.transfers) return;
  ++heard_transfers_;
  // The limit that lasted longest, the first one of equals.
  std::vector<std::pair<std::size_t, duration>> limits; // step that has it first, its time
  for (std::size_t i = 0; i < what.steps.size(); ++i) {
    const netem::transfer_step& step = what.steps[i];
    const duration end =
        i + 1 < what.steps.size() ? std::min(what.steps[i + 1].at, what.left) : what.left;
    const auto same = std::find_if(limits.begin(), limits.end(), [&](const auto& one) {
      const netem::transfer_step& other = what.steps[one.first];
      return other.why == step.why &&
             (step.why != netem::rate_limit::link || other.link == step.link);
    });
    if (same != limits.end())
      same->second += end - std::max(step.at, what.begun);
    else
      limits.emplace_back(i, end - std::max(step.at, what.begun));
  }
  std::string why;
  duration held{};
  if (!limits.empty()) {
    const auto& [first, time] =
        *std::max_element(limits.begin(), limits.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; });
    const netem::transfer_step& step = what.steps[first];
    why = step.why == netem::rate_limit::link ? options_.link_name(step.link)
                                              : limit_in_words(netem::name_of(step.why));
    held = time;
  }
  const std::string from = names_.of(what.from.host).name, to = names_.of(what.to.host).name;
  options_.listener->transfer({what.number, from, to, what.type, what.bytes, what.sent, what.begun,
                               what.left, what.arrives, what.cut, why, held});
}

std::string run_observers::name_of(actors::peer_id peer) const {
  const auto found = peers_.find(peer);
  return found == peers_.end() ? fmt::format("peer {:x}", peer) : found->second.name;
}

void run_observers::advance(duration time) {
  now_ = std::max(now_, time);
  rounds_.advance(now_);
  invariants_.advance(now_);
  while (now_ - day_began_ >= day) end_day(day_began_ + day);
  if (now_ < next_sample_) return;
  const duration interval = options_.record.metrics_interval;
  if ((now_ - next_sample_) / interval > most_idle_rows) next_sample_ = now_ / interval * interval;
  while (next_sample_ <= now_) {
    sample(next_sample_);
    next_sample_ += interval;
  }
}

void run_observers::count_peers(duration until) {
  peer_seconds_ += static_cast<double>(joined_ - left_) * to_seconds(until - peers_counted_);
  peers_counted_ = until;
}

void run_observers::end_day(duration time) {
  count_peers(time);
  summary::day_totals total{0, invariants_.highest_epoch(), samples_, 0};
  if (options_.bytes_sent)
    for (const std::uint64_t bytes : options_.bytes_sent()) total.bytes_sent += bytes;
  days_.push_back({peer_seconds_ / to_seconds(time - day_began_),
                   total.epochs - before_today_.epochs, total.samples - before_today_.samples,
                   total.bytes_sent - before_today_.bytes_sent});
  before_today_ = total;
  day_began_ = time;
  peer_seconds_ = 0;
}

void run_observers::sample(duration time) {
  const double passed = to_seconds(time - last_sample_);
  if (passed > 0) {
    metrics_.set(metric::samples_per_second, static_cast<double>(computed_) / passed);
    if (computed_ > 0) train_loss_ = loss_sum_ / static_cast<double>(computed_);
    metrics_.set(metric::loss_train, computed_ > 0 ? train_loss_ : std::nullopt);
    computed_ = 0;
    loss_sum_ = 0;
    last_sample_ = time;
  }

  const run_progress now = progress();
  const auto set = [&](metric which, std::uint64_t value) {
    metrics_.set(which, static_cast<double>(value));
  };
  metrics_.set(metric::virtual_time, to_seconds(time));
  metrics_.set(metric::loss_held_out, held_out_);
  set(metric::epoch, now.epoch);
  set(metric::samples, now.samples);
  set(metric::peers_alive, now.peers_alive);
  set(metric::peers_in_sync, now.peers_in_sync);
  set(metric::peers_joined, now.peers_joined);
  set(metric::peers_left, now.peers_left);
  const round_counts& rounds = rounds_.counts();
  set(metric::rounds_ok, rounds.of(actors::outcome::ok));
  set(metric::rounds_partial, rounds.of(actors::outcome::partial));
  set(metric::rounds_split, rounds.of(actors::outcome::split));
  set(metric::rounds_failed, rounds.of(actors::outcome::failed));
  for (const auto& [reason, count] : rounds.by_reason)
    metrics_.set(metric_by_label::rounds, reason, count);
  for (std::size_t i = 0; i < points_.size(); ++i)
    metrics_.set(metric_by_label::points, actors::probes::all[i], points_[i]);
  if (options_.wire) metrics_.set(options_.wire());
  if (options_.bytes_sent) {
    const std::array<std::uint64_t, 4> bytes = options_.bytes_sent();
    set(metric::bytes_data, bytes[0]);
    set(metric::bytes_averaging, bytes[1]);
    set(metric::bytes_state, bytes[2]);
    set(metric::bytes_control, bytes[3]);
  }
  set(metric::events, now.events);
  set(metric::misbehaved, misbehaved_);
  set(metric::invariant_violations, now.violations);
  if (csv_) csv_->write(metrics_.csv_row());
  if (options_.listener != nullptr) {
    options_.listener->metrics_row(metrics_.csv_row());
    if (options_.listener->wants_traffic()) tell_traffic();
  }
  if (options_.view == observed_view::local) keep_what_is_known();
}

void run_observers::tell_traffic() {
  if (!traffic_) return;
  std::vector<sent_bytes> all;
  traffic_->tell([&](const sent_bytes& row) { all.push_back(row); });
  options_.listener->traffic(all);
}

void run_observers::keep_what_is_known() {
  if (csv_) csv_->flush();
  if (epochs_csv_) epochs_csv_->flush();
  if (contributions_csv_) contributions_csv_->flush();
  if (log_) log_->flush();
}

void run_observers::on_event(const netem::delivered_event& event) {
  if (event.time >= next_sample_) advance(event.time);
  now_ = std::max(now_, event.time);
  history_.add(event);
  if (traffic_ && event.kind == netem::event_kind::message && event.from.host != netem::no_host &&
      event.to.host != netem::no_host)
    count_traffic(event);
  if (log_) log_->on_event(event);
}

void run_observers::count_traffic(const netem::delivered_event& event) {
  const auto machine_of = [this](netem::host_index host) {
    const host_identity& who = names_.of(host);
    if (!traffic_->knows(who.machine))
      traffic_->place(who.machine, who.name, options_.region_of(who.machine, who.name));
    return who.machine;
  };
  const std::uint32_t from = machine_of(event.from.host), to = machine_of(event.to.host);
  traffic_->add(from, to, event.type, event.wire_bytes);
}

void run_observers::on_observation(duration time, actors::peer_id peer, std::uint32_t machine,
                                   std::string_view host_name, const actors::observation& what) {
  advance(time);
  if (const auto* x = actors::get_if<actors::trained>(&what)) {
    computed_ += actors::index_count(x->samples);
    loss_sum_ += x->loss_sum;
    epochs_.trained(x->epoch, actors::index_count(x->samples), x->loss_sum);
    if (const auto found = peers_.find(peer); found != peers_.end()) {
      found->second.computed += actors::index_count(x->samples);
      found->second.loss_sum += x->loss_sum;
    }
  } else if (actors::holds_alternative<actors::misbehaved>(what)) {
    ++misbehaved_;
  } else if (const auto* learned = actors::get_if<actors::reach_learned>(&what)) {
    if (const auto found = peers_.find(peer); found != peers_.end())
      found->second.reach = learned->reach;
    if (options_.true_reach && learned->reach != actors::reach::unknown)
      ++(learned->reach == options_.true_reach(machine) ? learned_right_ : learned_wrong_);
  }
  invariants_.on_observation(time, peer, what);
  if (const auto* x = actors::get_if<actors::contributed>(&what)) {
    double loss = std::numeric_limits<double>::quiet_NaN();
    const auto found = peers_.find(peer);
    if (found != peers_.end() && found->second.computed > 0)
      loss = found->second.loss_sum / static_cast<double>(found->second.computed);
    // The second of two rounds is about the same samples.
    if (found != peers_.end() && !x->first_of_two)
      found->second.computed = 0, found->second.loss_sum = 0;
    rounds_.contributed(time, peer, *x, loss);
  }
  if (const auto* x = actors::get_if<actors::round_ended>(&what)) {
    // Before the book: a round that becomes final with it comes after it.
    if (options_.listener != nullptr)
      options_.listener->round_ended(time,
                                     {host_name, x->group.hex(), x->epoch,
                                      actors::to_string(x->outcome), actors::to_string(x->reason)});
    rounds_.ended(time, peer, *x);
  }
  if (const auto* x = actors::get_if<actors::phase_changed>(&what);
      x && x->phase == actors::peer_phase::gone)
    left(time, peer, "left");
  if (const auto* x = actors::get_if<actors::phase_changed>(&what)) {
    // Who downloads has thrown away what it computed.
    if (const auto found = peers_.find(peer);
        x->phase == actors::peer_phase::downloading && found != peers_.end())
      found->second.computed = 0, found->second.loss_sum = 0;
    if (options_.listener != nullptr)
      options_.listener->phase(time, host_name, phase_name(x->phase));
  }
  if (log_)
    log_->on_observation(time, peers_.contains(peer) ? std::optional(machine) : std::nullopt,
                         host_name, what);
  epochs_.reached(now_, invariants_.highest_epoch());
  if (epochs_csv_ || options_.listener != nullptr) keep_epochs(epochs_.rows_that_are_over());
  // A process that is killed leaves what it had said of its rounds.
  if (options_.view == observed_view::local &&
      (actors::holds_alternative<actors::contributed>(what) ||
       actors::holds_alternative<actors::round_ended>(what)))
    keep_what_is_known();
}

void run_observers::on_host_started(duration time, actors::peer_id peer, std::string_view host_name,
                                    std::uint32_t machine, std::uint32_t incarnation) {
  advance(time);
  peers_.insert_or_assign(peer, peer_entry{std::string(host_name), machine, incarnation, time});
  if (options_.listener != nullptr) options_.listener->host_started(time, host_name);
  count_peers(now_);
  ++joined_;
  invariants_.on_started(time, peer);
}

void run_observers::on_host_killed(duration time, actors::peer_id peer, std::string_view reason) {
  advance(time);
  left(time, peer, reason);
}

void run_observers::left(duration time, actors::peer_id peer, std::string_view reason) {
  const auto found = peers_.find(peer);
  if (found == peers_.end() || !found->second.alive) return; // it left before it was killed
  found->second.alive = false;
  found->second.ended = time;
  found->second.reason = reason;
  if (options_.listener != nullptr) options_.listener->host_ended(time, found->second.name, reason);
  count_peers(now_);
  ++left_;
  invariants_.on_left(time, peer);
  rounds_.killed(time, peer);
}

void run_observers::on_point(std::string_view point) {
  const auto found = std::find(actors::probes::all.begin(), actors::probes::all.end(), point);
  SHOAL_CHECK(found != actors::probes::all.end(), "a probe is one of actors::probes::all");
  ++points_[static_cast<std::size_t>(found - actors::probes::all.begin())];
}

void run_observers::on_fault(duration time, std::size_t number, const char* action, bool begins,
                             bool cuts_off, const std::vector<std::string>& hosts) {
  advance(time);
  if (begins) faults_struck_ += std::max<std::size_t>(hosts.size(), 1);
  if (begins && cuts_off) invariants_.cut(time);
  if (log_) log_->on_fault(time, number, action, begins, hosts);
  if (options_.listener != nullptr) options_.listener->fault(time, number, action, begins, hosts);
}

void run_observers::on_held_out_loss(duration time, double loss) {
  if (time > next_sample_) advance(time);
  epochs_.held_out(invariants_.highest_epoch(), loss);
  // A row of this very moment has it already.
  if (!first_held_out_) first_held_out_ = loss;
  held_out_ = loss;
  advance(time);
}

void run_observers::on_round(const swarm_round& what) {
  invariants_.on_round(what);
  samples_ += samples_included(what);
  if (!what.unfinished && what.outcome != actors::outcome::failed)
    metrics_.add_round(to_seconds(what.ended - what.started));
  if (log_) log_->on_round(what);
  if (options_.listener != nullptr && !what.unfinished)
    options_.listener->round({what.group.hex(), what.epoch, what.started, what.ended,
                              what.members.size(), actors::to_string(what.outcome),
                              actors::to_string(what.reason), what.first_of_two,
                              samples_included(what)});
  if (what.first_of_two ||
      (!contributions_csv_ && options_.listener == nullptr && !options_.on_contribution))
    return;
  for (std::uint32_t i = 0; i < what.members.size(); ++i) {
    const round_member& who = what.members[i];
    const std::uint64_t samples = actors::index_count(who.samples);
    if (!who.known || samples == 0 || !is_included(what, i)) continue;
    const std::string host = name_of(who.peer);
    if (contributions_csv_)
      contributions_csv_->write(
          fmt::format("{:.9f},{},{},{},{},{}\n", to_seconds(what.ended), what.epoch, who.peer, host,
                      samples, std::isfinite(who.loss) ? fmt::format("{}", who.loss) : ""));
    if (options_.listener != nullptr)
      options_.listener->contribution(what.ended, host, samples, who.loss);
    if (options_.on_contribution) options_.on_contribution(what, samples);
  }
}

void run_observers::keep_epochs(const std::string& rows) {
  if (rows.empty()) return;
  if (epochs_csv_) epochs_csv_->write(rows);
  if (options_.listener != nullptr) options_.listener->epoch_rows(rows);
}

run_progress run_observers::progress() const {
  run_progress out;
  out.time = now_;
  out.epoch = invariants_.highest_epoch();
  out.samples = samples_;
  out.train_loss = train_loss_;
  out.held_out_loss = held_out_;
  out.peers_joined = joined_;
  out.peers_left = left_;
  out.peers_alive = joined_ - left_;
  out.peers_in_sync = invariants_.in_sync();
  out.events = history_.events();
  for (const invariant& one : invariants_.all()) out.violations += one.violated;
  return out;
}

std::string run_observers::peers_csv() const {
  std::string out = "id,name,machine,incarnation,started_s,ended_s,reason\n";
  std::vector<actors::peer_id> ids;
  for (const auto& [id, peer] : peers_) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  for (const actors::peer_id id : ids) {
    const peer_entry& peer = peers_.at(id);
    out +=
        fmt::format("{},{},{},{},{:.9f},{},{}\n", id, peer.name, peer.machine, peer.incarnation,
                    to_seconds(peer.started),
                    peer.alive ? "" : fmt::format("{:.9f}", to_seconds(peer.ended)), peer.reason);
  }
  return out;
}

const std::optional<failure>& run_observers::write_error() const noexcept {
  static const std::optional<failure> none;
  for (const output_file* file : {csv_.get(), epochs_csv_.get(), contributions_csv_.get()})
    if (file != nullptr && file->error()) return file->error();
  if (transfers_ && transfers_->error()) return transfers_->error();
  return log_ ? log_->error() : none;
}

result<void> run_observers::finish(const end_facts& facts, summary& into) {
  advance(facts.time);
  rounds_.finish(now_);
  invariants_.finish(now_, facts.leaks, facts.leading);
  sample(now_);

  into = {};
  into.scenario = options_.scenario;
  into.seed = options_.seed;
  into.world = options_.world;
  if (facts.deterministic) into.event_hash = history_.current().hex();
  into.state_hash = facts.state_hash;
  into.virtual_seconds = to_seconds(now_);
  into.wall_seconds = facts.wall_seconds;
  into.peak_rss_bytes = peak_rss_bytes();
  into.epochs = invariants_.highest_epoch();
  into.samples = samples_;
  into.loss = facts.loss;
  if (!into.loss.first) into.loss.first = first_held_out_;
  if (!into.loss.final) into.loss.final = held_out_;
  const round_counts& rounds = rounds_.counts();
  into.rounds = {rounds.of(actors::outcome::ok),
                 rounds.of(actors::outcome::partial),
                 rounds.of(actors::outcome::split),
                 rounds.of(actors::outcome::failed),
                 rounds.by_reason,
                 rounds.completed > 0 ? std::optional(rounds.completed_seconds /
                                                      static_cast<double>(rounds.completed))
                                      : std::nullopt};
  if (options_.bytes_sent) {
    const std::array<std::uint64_t, 4> bytes = options_.bytes_sent();
    into.bytes_sent = {bytes[0], bytes[1], bytes[2], bytes[3]};
  }
  into.peers = {joined_, left_, joined_ - left_};
  if (!days_.empty() && now_ > day_began_) end_day(now_);
  if (days_.size() > 1) {
    into.days = days_;
    into.epochs_planned = options_.epochs_planned;
  }
  into.faults_struck = faults_struck_;
  if (options_.true_reach) {
    auto& totals = into.reachability.emplace();
    for (const auto& [id, peer] : peers_)
      ++(peer.reach == actors::reach::open            ? totals.open
         : peer.reach == actors::reach::cone          ? totals.cone
         : peer.reach == actors::reach::symmetric     ? totals.symmetric
         : peer.reach == actors::reach::outbound_only ? totals.outbound_only
                                                      : totals.unknown);
    totals.right = learned_right_;
    totals.wrong = learned_wrong_;
  }
  for (std::size_t i = 0; i < rule_names.size(); ++i) {
    const invariant& one = invariants_.all()[i];
    into.invariants.emplace_back(
        rule_names[i], summary::check_totals{one.checked, one.violated, one.first_violation});
  }

  keep_epochs(epochs_.last_rows());
  if (options_.listener != nullptr) tell_traffic();
  if (directory_ == nullptr) return {};
  result<void> out;
  const auto keep_first = [&](result<void> next) {
    if (out && !next) out = failure{next.error()};
  };
  keep_first(csv_->commit());
  keep_first(epochs_csv_->commit());
  keep_first(contributions_csv_->commit());
  if (traffic_) keep_first(directory_->write("traffic.csv", traffic_->csv()));
  keep_first(log_->close());
  if (transfers_) keep_first(transfers_->close());
  keep_first(directory_->write("metrics.prom", metrics_.exposition()));
  keep_first(directory_->write("peers.csv", peers_csv()));
  csv_.reset();
  epochs_csv_.reset();
  contributions_csv_.reset();
  log_.reset();
  transfers_.reset();
  return out;
}

} // namespace shoal::scenarios
