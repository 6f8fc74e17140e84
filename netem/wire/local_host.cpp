#include "netem/wire/local_host.hpp"

#include "netem/coordinator.hpp"
#include "netem/fabric.hpp"
#include "netem/wire/message_frames.hpp"
#include "netem/wire/send_control_request.hpp"

#include <algorithm>
#include <random>

namespace shoal::netem::wire {

namespace {

handshake_rules rules_of(const context& all, const host_options& options) {
  return {options.name,
          options.incarnation,
          all.options.admits != nullptr,
          all.options.most_clock_difference,
          all.scenario,
          all.options.scenario};
}

own_host own_of(const context& all, host_index host, const host_options& options) {
  return {key_of(all.net->node_of(host)), options.name,   options.incarnation, options.advertise,
          options.listen.has_value(),     options.uplink, options.relay_bytes};
}

std::uint64_t random_number() {
  return std::uint64_t{std::random_device{}()} << 32 | std::random_device{}();
}

control_requests::surroundings requests_of(const std::shared_ptr<context>& all, host_index host) {
  control_requests::surroundings out;
  out.admits = all->options.admits;
  if (all->options.on_control_request)
    out.answer = [all, host](const control_client& who, const std::string& question) {
      return all->options.on_control_request(host, who, question);
    };
  out.utc_ns = all->options.utc_ns;
  out.count_refusal = [all](std::string_view why) { all->count(why); };
  return out;
}

} // namespace

local_host::local_host(std::shared_ptr<context> all, host_index host, host_options options)
    : all_(std::move(all)), host_(host), options_(std::move(options)),
      tick_(std::min<duration>(all_->options.detection_time / 8, std::chrono::milliseconds(250))),
      rules_(rules_of(*all_, options_)), revoked_(all_->options.admits),
      requests_(std::make_shared<control_requests>(requests_of(all_, host_))),
      state_(*all_, own_of(*all_, host_, options_),
             host_state::surroundings{
                 [all = all_](host_index other) { return key_of(all->net->node_of(other)); },
                 [this](const std::string& where, int which) { return dial(where, which); },
                 [all = all_] { return all->now(); }, random_number()}) {}

result<void> local_host::open() {
  if (options_.listen) {
    listener_options at;
    at.at = *options_.listen;
    at.credentials = all_->options.credentials;
    at.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(all_->options.hello_time);
    at.pipes = all_->options.bulk;
    at.on_pipe = [weak = weak_from_this()](std::shared_ptr<pipe> made) {
      if (auto self = weak.lock())
        self->incoming(std::move(made));
      else
        reject(made);
    };
    stripes_ = std::make_shared<stripe_sets>(pipe_kinds[1],
                                             [weak = weak_from_this()](std::shared_ptr<pipe> made) {
                                               if (auto self = weak.lock())
                                                 self->pipe_came(std::move(made));
                                               else
                                                 made->close();
                                             });
    auto made = listener::open(std::move(at));
    if (!made) return failure{made.error()};
    listener_ = std::move(*made);
    if (options_.advertise.empty()) options_.advertise = listener_->at().text();
    state_.lock()->set_own_address(options_.advertise);
    all_->set_address(host_, options_.advertise);
  }
  schedule_tick();
  return {};
}

std::shared_ptr<pipe> local_host::dial(const std::string& where, int which) const {
  const auto& options = all_->options;
  const auto& credentials = options.credentials;
  if (which == 0) return open_pipe(where, pipe_kinds[0], credentials, options.control);
  if (options.bulk_connections == 1)
    return open_pipe(where, pipe_kinds[1], credentials, options.bulk);
  std::vector<std::shared_ptr<pipe>> stripes;
  for (std::size_t i = 0; i < options.bulk_connections; ++i)
    stripes.push_back(open_pipe(where, stripe_kind, credentials, options.bulk));
  return striped_pipe::over(pipe_kinds[1], random_number(), std::move(stripes));
}

void local_host::close() {
  const auto pipes = state_.lock()->close();
  for (const auto& each : pipes) each->close();
  requests_->close();
  if (stripes_) stripes_->close();
  if (listener_) listener_->close();
}

void local_host::introduce(const caf::actor& service) {
  const std::uint64_t number = service ? service.id() : 0;
  state_.lock()->introduce(number, now());
}

void local_host::join(const address& where) {
  state_.lock()->joins.add(where.text());
  tick();
}

void local_host::leave() {
  const auto pipes = state_.lock()->leave(now());
  for (const auto& each : pipes) each->finish();
}

void local_host::add_counts(network_counts& into) const {
  if (!listener_) return;
  const auto gate = listener_->refused();
  const std::uint64_t counts[] = {gate.silent, gate.garbage, gate.too_many, gate.handshake};
  for (std::size_t i = 0; i < gate_refusal_names.size(); ++i)
    into.connections_refused[std::string(gate_refusal_names[i])] += counts[i];
}

void local_host::carry(endpoint from, endpoint to, caf::mailbox_element_ptr element,
                       std::uint64_t bytes, bool bulk) {
  if (silent_) return;
  message_head head;
  head.to = to.ordinal;
  head.from = element->sender ? from.ordinal : no_sender;
  head.wire_bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, 0xffffffff));
  const auto piece = bulk && options_.uplink > 0 ? paced_piece_bytes : piece_bytes;
  auto frames = frames_of(head, encode(*all_->system, element->content()), piece);
  apply([&](host_state& state, deferred& later) {
    state.send(to.host, std::move(frames), bulk, now(), later);
  });
}

void local_host::watch(endpoint of) {
  if (silent_) return;
  apply([&](host_state& state, deferred& later) { state.watch(of, now(), later); });
}

void local_host::perform(const deferred& work) {
  for (const auto& each : work.greet)
    for (int i = 0; i < 2; ++i) {
      start(each.with, i);
      each.with->pipes[i].through->send(each.hello);
    }
  if (work.pump_at)
    all_->clock->at(*work.pump_at, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (!self) return;
      self->apply([&](host_state& state, deferred& later) { state.pump_turn(self->now(), later); });
    });
  if (work.tick_at) tick_at(*work.tick_at);
  if (work.overfull) end(work.overfull, "it takes nothing");
}

void local_host::schedule_tick() {
  all_->clock->at(now() + tick_, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->tick();
    self->schedule_tick();
  });
}

void local_host::tick_at(duration when) {
  all_->clock->at(when, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->tick();
  });
}

void local_host::tick() {
  if (!silent_ && revoked_.is_behind())
    revocation_list_changed(nullptr, "was put into the folder of keys");
  host_state::due_work due;
  {
    const auto state = state_.lock();
    if (state->is_closed() || silent_) return;
    due = state->tick(now());
  }
  requests_->close_overdue(now(), all_->options.hello_time);
  if (stripes_) stripes_->close_overdue(now(), all_->options.hello_time);
  end_banned();
  for (const auto& [each, why] : due.to_close) end(each, why);
  for (const auto& [host, messages] : due.given_up) {
    all_->messages_lost += messages;
    all_->net->gone(host_, host, {}, false);
  }
  if (due.hosts.empty() && due.joins.empty()) return;
  apply([&](host_state& state, deferred& later) { state.dial_due(due, now(), later); });
}

} // namespace shoal::netem::wire
