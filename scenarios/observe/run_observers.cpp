#include "scenarios/observe/run_observers.hpp"

#include "actors/averaging/observations.hpp"
#include "scenarios/observe/run_observer.hpp"

#include <algorithm>
#include <utility>

namespace shoal::scenarios {

namespace {

/// The most rows between two events that are far apart. Further rows would repeat the same values.
constexpr std::int64_t most_idle_rows = 1000;

} // namespace

observer_options local_view_of(observer_options whole, std::optional<std::uint32_t> peer_machine) {
  whole.view = observed_view::local;
  whole.peer_machines.clear();
  if (peer_machine) whole.peer_machines.push_back(*peer_machine);
  whole.record.peers = 0;
  // Without its rounds a host's directory cannot be combined with those of the other hosts.
  if (whole.record.events == event_detail::none) whole.record.events = event_detail::rounds;
  return whole;
}

run_observers::run_observers(observer_options options, const run_directory* directory) {
  options.record.metrics_interval = std::max(options.record.metrics_interval, duration(1));
  books_ =
      std::make_unique<run_books>(std::move(options), directory, [this](const swarm_round& what) {
        for (const auto& each : all_) each->on_round(what);
      });
  books_->left = [this](duration time, actors::peer_id peer, std::string_view reason) {
    left(time, peer, reason);
  };
}

run_observers::~run_observers() = default;

result<std::unique_ptr<run_observers>> run_observers::create(observer_options options,
                                                             const run_directory* directory) {
  std::unique_ptr<run_observers> out(new run_observers(std::move(options), directory));
  for (const make_observer make : observers()) {
    auto made = make(*out->books_);
    if (!made) return failure{made.error()};
    if (!*made) continue;
    if ((*made)->sees_events()) out->watching_events_.push_back(made->get());
    out->all_.push_back(std::move(*made));
  }
  return out;
}

void run_observers::advance(duration time) {
  run_books& books = *books_;
  books.now = std::max(books.now, time);
  books.rounds.advance(books.now);
  books.checks.advance(books.now);
  for (const auto& each : all_) each->on_time();
  if (books.now < next_row_) return;
  const duration interval = books.options.record.metrics_interval;
  if ((books.now - next_row_) / interval > most_idle_rows)
    next_row_ = books.now / interval * interval;
  while (next_row_ <= books.now) {
    add_row(next_row_);
    next_row_ += interval;
  }
}

void run_observers::add_row(duration time) {
  for (const auto& each : all_) each->set_metrics(time);
  const std::string row = books_->values.csv_row();
  for (const auto& each : all_) each->on_row(row);
  if (books_->options.view == observed_view::local) flush();
}

void run_observers::flush() {
  for (const auto& each : all_) each->flush();
}

void run_observers::on_time(duration time) {
  advance(time);
}

void run_observers::on_ending(duration time) {
  advance(time);
  books_->checks.ending(books_->now);
}

void run_observers::on_event(const netem::delivered_event& event) {
  if (event.time >= next_row_) advance(event.time);
  books_->now = std::max(books_->now, event.time);
  for (run_observer* each : watching_events_) each->on_event(event);
}

void run_observers::on_transfer(const netem::transfer_record& what) {
  for (const auto& each : all_) each->on_transfer(what);
}

void run_observers::on_observation(duration time, actors::peer_id peer, std::uint32_t machine,
                                   std::string_view host_name, const actors::observation& what) {
  advance(time);
  const seen_observation seen{time, peer, machine, host_name, what};
  for (const auto& each : all_) each->on_observation(seen);
  // The observations of rounds have to survive if the process is killed.
  if (books_->options.view == observed_view::local &&
      (actors::holds_alternative<actors::contributed>(what) ||
       actors::holds_alternative<actors::round_ended>(what)))
    flush();
}

void run_observers::on_host_started(duration time, actors::peer_id peer, std::string_view host_name,
                                    std::uint32_t machine, std::uint32_t incarnation) {
  advance(time);
  books_->peers.started(peer, {std::string(host_name), machine, incarnation, time});
  const seen_peer seen{time, peer, host_name, {}};
  for (const auto& each : all_) each->on_peer_started(seen);
}

void run_observers::on_host_killed(duration time, actors::peer_id peer, std::string_view reason) {
  advance(time);
  left(time, peer, reason);
}

void run_observers::left(duration time, actors::peer_id peer, std::string_view reason) {
  if (!books_->peers.ended(time, peer, reason)) return; // the peer left before its host was killed
  const std::string host = books_->peers.name_of(peer);
  const seen_peer seen{time, peer, host, reason};
  for (const auto& each : all_) each->on_peer_left(seen);
}

void run_observers::on_point(std::string_view point) {
  for (const auto& each : all_) each->on_point(point);
}

void run_observers::on_fault(duration time, std::size_t number, const char* action, bool begins,
                             bool cuts_off, const std::vector<std::string>& hosts) {
  advance(time);
  const seen_fault fault{time, number, action, begins, cuts_off, hosts};
  for (const auto& each : all_) each->on_fault(fault);
}

void run_observers::on_held_out_loss(duration time, double loss) {
  // The row of this moment must already contain the loss.
  if (time > next_row_) advance(time);
  for (const auto& each : all_) each->on_held_out_loss(loss);
  advance(time);
}

run_progress run_observers::progress() const {
  const run_books& books = *books_;
  run_progress out;
  out.time = books.now;
  out.epoch = books.checks.highest_epoch();
  out.samples = books.samples;
  out.train_loss = books.train_loss;
  out.held_out_loss = books.held_out_loss;
  out.peers_joined = books.peers.joined();
  out.peers_left = books.peers.left();
  out.peers_alive = books.peers.alive();
  out.peers_in_sync = books.checks.in_sync();
  out.events = books.history.events();
  out.violations = books.checks.violations();
  return out;
}

digest run_observers::event_hash() const {
  return books_->history.current();
}

const round_counts& run_observers::rounds() const noexcept {
  return books_->rounds.counts();
}

const invariants& run_observers::checks() const noexcept {
  return books_->checks;
}

const metrics& run_observers::values() const noexcept {
  return books_->values;
}

const std::optional<failure>& run_observers::write_error() const noexcept {
  static const std::optional<failure> none;
  for (const auto& each : all_)
    if (const std::optional<failure>* error = each->error(); error != nullptr && *error)
      return *error;
  return none;
}

result<void> run_observers::finish(const end_facts& facts, summary& into) {
  run_books& books = *books_;
  advance(facts.time);
  books.rounds.finish(books.now);
  books.checks.finish(books.now, facts.leaks, facts.leading);
  add_row(books.now);

  into = {};
  into.scenario = books.options.scenario;
  into.seed = books.options.seed;
  into.world = books.options.world;
  into.state_hash = facts.state_hash;
  into.virtual_seconds = to_seconds(books.now);
  into.wall_seconds = facts.wall_seconds;
  into.peak_rss_bytes = peak_rss_bytes();
  for (const auto& each : all_) each->finish(facts, into);
  result<void> out;
  if (books.directory != nullptr)
    for (const auto& each : all_)
      if (auto closed = each->close(); !closed && out) out = failure{closed.error()};
  // The files are closed, so events from the end of the world can no longer be written.
  watching_events_.clear();
  all_.clear();
  return out;
}

} // namespace shoal::scenarios
