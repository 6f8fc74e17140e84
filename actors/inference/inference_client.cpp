#include "actors/inference/inference_client.hpp"

#include "actors/inference/observations.hpp"
#include "actors/observe.hpp"
#include "kernels/base/check.hpp"

#include <caf/actor_cast.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace shoal::actors {

namespace {

constexpr double smoothing = 0.2; // weight of a new round trip in the mean
constexpr unsigned most_strikes = 8;

} // namespace

inference_client::inference_client(caf::actor_config& config, host& on,
                                   inference_client_config options)
    : protocol_actor(config, on), options_(std::move(options)),
      names_(on.random_stream(options_.instance == 0
                                  ? std::string{"inference.sessions"}
                                  : fmt::format("inference.sessions.{}", options_.instance))),
      routes_(on.random_stream("inference.routes")) {
  SHOAL_CHECK(options_.ends != nullptr, "a client has the ends of its model");
  SHOAL_CHECK(options_.beams > 0, "a client has a beam");
  SHOAL_CHECK(activation_codec(static_cast<std::uint8_t>(options_.codec)),
              "activations have this codec");
}

void inference_client::on_exit() {
  options_.dht = nullptr;
  options_.on_token = nullptr;
  servers_.clear();
  by_address_.clear();
  queue_.clear();
  now_.reset();
  protocol_actor::on_exit();
}

caf::behavior inference_client::make_behavior() {
  return {
      [this](const generate_request& m) {
        queue_.push_back(m);
        begin();
      },
      [this](const found& m) { read(m); },
      [this](const inference_output& m) {
        if (!now_ || m.token != last_token_) return;
        if (!is_from_holder(m.session)) return;
        const auto from = sender_peer();
        const auto values = unpack_activations(options_.codec, m.activations, rows_,
                                               options_.ends->width(), options_.sized);
        if (!values || !now_->chain.answered(m.token, *values)) {
          if (const auto lost = now_->chain.lost_request(m.token))
            lose(*lost, refusal::wrong_values, true);
          return pump();
        }
        if (const auto server = servers_.find(from); server != servers_.end()) {
          auto& rtt = server->second.round_trip;
          const double measured = std::max(0.0, to_seconds(now() - sent_) - computing_);
          rtt = rtt ? *rtt + smoothing * (measured - *rtt) : measured;
          server->second.strikes = 0;
        }
        pump();
      },
      [this](const inference_refused& m) {
        if (!now_ || m.token != last_token_ || !is_from_holder(m.session)) return;
        const auto lost = now_->chain.lost_request(m.token);
        if (!lost) return;
        const auto why = m.why <= static_cast<std::uint8_t>(refusal::drains)
                             ? static_cast<refusal>(m.why)
                             : refusal::wrong_values;
        // A server that forgot a session may open it again.
        lose(*lost, why, why != refusal::unknown_session);
        pump();
      },
      [this](const tick& t) {
        if (t.kind == leave) {
          if (now_) close_sessions();
          return quit();
        }
        if (t.kind == look_up && t.token == look_ups_) ask_servers();
        if (t.kind == step_late && now_ && t.token == last_token_)
          if (const auto lost = now_->chain.lost_request(t.token)) {
            lose(*lost, refusal::none, true);
            pump();
          }
      },
  };
}

bool inference_client::is_from_holder(std::uint64_t session) {
  const auto from = sender_peer();
  const auto holders = now_->chain.holders();
  return std::any_of(holders.begin(), holders.end(), [&](const auto& each) {
    return each.server == from && each.session == session;
  });
}

void inference_client::ask_servers() {
  send(options_.dht, lookup{servers_key(options_.model), address(), 0});
  // Look up again while there is work; a later call replaces the timer.
  if (now_ || !queue_.empty())
    set_timer(now_ && now_->waits ? options_.retry : options_.look_up_every, look_up, ++look_ups_);
}

void inference_client::read(const found& m) {
  std::set<peer_id> seen;
  for (const auto& each : m.records) {
    const auto& entry = *each;
    const auto record = server_record::unpack(entry.value);
    if (!record || record->model != options_.model_digest || !entry.address ||
        record->layers.last > options_.ends->layers())
      continue;
    const auto peer = here().peer_of(caf::actor_cast<caf::strong_actor_ptr>(entry.address));
    if (peer == 0) continue;
    if (const auto gone = gone_.find(peer); gone != gone_.end()) {
      if (entry.expires_utc_ns <= gone->second) continue;
      gone_.erase(gone);
    }
    seen.insert(peer);
    auto& server = servers_[peer];
    server.address = entry.address;
    server.record = *record;
    server.expires_utc_ns = entry.expires_utc_ns;
  }
  std::erase_if(servers_, [&](const auto& each) {
    return !seen.contains(each.first) && !each.second.watched;
  });
  looked_ = true;
  if (now_)
    pump();
  else
    begin();
}

void inference_client::begin() {
  while (!now_ && !queue_.empty()) {
    if (!looked_) return ask_servers();
    auto what = std::move(queue_.front());
    queue_.pop_front();
    const auto all = what.prompt.size() + what.count;
    std::string why;
    auto first = options_.ends->embed(what.prompt);
    if (what.prompt.empty())
      why = "the prompt is empty: it needs at least one token";
    else if (!first)
      why = first.error();
    else if (all > options_.ends->context())
      why = fmt::format("{} tokens after a prompt of {} are more than the model's context of {}",
                        what.count, what.prompt.size(), options_.ends->context());
    if (!why.empty() || what.count == 0) {
      send(what.reply_to, generated{what.token, {}, why});
      continue;
    }
    auto random = stream(options_.seed, "sampling", options_.draws_as.value_or(what.token));
    now_.emplace(running{std::move(what),
                         span_chain(static_cast<std::uint32_t>(options_.ends->layers()),
                                    options_.beams, all, options_.ends->width()),
                         std::move(random), learn::beam_search(options_.beams)});
    std::vector<float> prompts; // each beam begins with the prompt
    for (std::size_t i = 0; i < options_.beams; ++i)
      prompts.insert(prompts.end(), first->begin(), first->end());
    now_->chain.feed(prompts);
    set_timer(options_.look_up_every, look_up, ++look_ups_);
    pump();
  }
}

std::vector<server_view> inference_client::views() const {
  std::vector<server_view> out;
  for (const auto& [peer, server] : servers_)
    if (server.banned_until <= now() && !server.record.drains)
      out.push_back(
          {peer, server.record.layers,
           server.round_trip.value_or(options_.unknown_round_trip) + options_.step_overhead,
           static_cast<double>(server.record.layer_ns) * 1e-9, server.record.cache_left});
  return out;
}

bool inference_client::plan(layer_span layers) {
  const auto known = views();
  const auto route = options_.spreads
                         ? weighted_route(known, layers, routes_)
                         : fastest_route(known, layers, now_->chain.most() * now_->chain.samples());
  if (route.empty()) {
    if (!std::exchange(now_->waits, true)) {
      const auto missing = uncovered(known, layers);
      here().observe(layers_missing{now_->what.token, missing.value_or(layers)});
      set_timer(options_.retry, look_up, ++look_ups_);
    }
    return false;
  }
  now_->waits = false;
  std::vector<std::uint64_t> sessions;
  for (std::size_t i = 0; i < route.size(); ++i) sessions.push_back(names_.next());
  now_->chain.routed(layers, route, sessions);
  here().observe(route_chosen{now_->what.token, route});
  return true;
}

void inference_client::pump() {
  while (now_) {
    auto next = now_->chain.next();
    if (std::holds_alternative<span_chain::waits>(next)) return;
    if (const auto* open = std::get_if<span_chain::needs_route>(&next)) {
      if (!plan(open->layers)) return;
    } else if (const auto* step = std::get_if<span_chain::request>(&next)) {
      dispatch(*step);
    } else {
      token_from(now_->chain.take(1));
    }
  }
}

void inference_client::dispatch(const span_chain::request& step) {
  const auto found = servers_.find(step.server);
  if (found == servers_.end()) {
    now_->chain.lost(step.server);
    return;
  }
  auto& server = found->second;
  if (!std::exchange(server.watched, true)) {
    by_address_.emplace(caf::actor_cast<caf::actor_addr>(server.address), step.server);
    monitor(server.address);
  }
  now_->chain.sent(step, ++last_token_);
  sent_ = now();
  computing_ = static_cast<double>(server.record.layer_ns) * 1e-9 *
               static_cast<double>(step.time * step.layers.count());
  inference_step out;
  out.reply_to = address();
  out.session = step.session;
  out.token = last_token_;
  out.first = step.layers.first;
  out.last = step.layers.last;
  out.samples = static_cast<std::uint32_t>(now_->chain.samples());
  out.most = static_cast<std::uint32_t>(now_->chain.most());
  out.from = static_cast<std::uint32_t>(step.from);
  out.time = static_cast<std::uint32_t>(step.time);
  out.codec = static_cast<std::uint8_t>(options_.codec);
  rows_ = now_->chain.samples() * step.time;
  auto packed =
      pack_activations(options_.codec, step.activations, options_.ends->width(), options_.sized);
  SHOAL_CHECK(packed.ok(), "the chain holds finite values alone");
  out.activations = std::move(*packed);
  out.order = step.order;
  send(server.address, std::move(out));
  set_timer(options_.step_timeout + from_seconds(4 * computing_), step_late, last_token_);
}

void inference_client::beams_from(const std::vector<float>& logits) {
  now_->search.step(logits);
  if (now_->search.best().size() < now_->what.count) {
    now_->chain.reorder(now_->search.parents());
    return now_->chain.feed(*options_.ends->embed(now_->search.last_tokens()));
  }
  for (const auto token : now_->search.best()) {
    if (options_.stop == token) break;
    accept(token);
  }
  finish({});
}

void inference_client::accept(learn::token_id token) {
  const auto position = now_->what.prompt.size() + now_->tokens.size();
  now_->tokens.push_back(token);
  here().observe(token_chosen{now_->what.token, static_cast<std::uint32_t>(position), token});
  if (options_.on_token) options_.on_token(now_->what.token, token);
}

void inference_client::token_from(const std::vector<float>& output) {
  const auto logits = options_.ends->logits(output);
  SHOAL_CHECK(logits.ok(), "the chain has the width of the ends");
  if (options_.beams > 1) return beams_from(*logits);
  const auto token =
      static_cast<std::int64_t>(learn::choose(*logits, options_.sampling, now_->random));
  if (options_.stop == token) return finish({});
  accept(token);
  if (now_->tokens.size() == now_->what.count) return finish({});
  const learn::token_id next[] = {token};
  now_->chain.feed(*options_.ends->embed(next));
}

void inference_client::close_sessions() {
  for (const auto& each : now_->chain.holders())
    if (each.server)
      if (const auto server = servers_.find(*each.server); server != servers_.end())
        send(server->second.address, session_closed{each.session});
}

void inference_client::finish(std::string why) {
  close_sessions();
  here().observe(request_done{now_->what.token, now_->tokens.size(), now_->chain.replayed()});
  send(now_->what.reply_to, generated{now_->what.token, std::move(now_->tokens), std::move(why)});
  now_.reset();
  begin();
}

void inference_client::lose(const span_chain::lost_span& span, refusal why, bool bans) {
  here().observe(span_lost{now_->what.token, span.server, why});
  const auto found = servers_.find(span.server);
  if (found == servers_.end()) return;
  auto& server = found->second;
  send(server.address, session_closed{span.session});
  if (!bans) return;
  server.banned_until = now() + options_.ban * (1U << std::min(server.strikes, most_strikes));
  ++server.strikes;
  // The server may have other spans, which would only be refused later.
  for (const auto& each : now_->chain.holders())
    if (each.server == span.server) send(server.address, session_closed{each.session});
  now_->chain.lost(span.server);
}

void inference_client::on_down(const caf::actor_addr& whom) {
  const auto found = by_address_.find(whom);
  if (found == by_address_.end()) return;
  const auto server = found->second;
  by_address_.erase(found);
  const auto known = servers_.find(server);
  if (known != servers_.end()) {
    gone_.insert_or_assign(server, known->second.expires_utc_ns);
    servers_.erase(known);
  }
  if (now_ && now_->chain.lost(server)) {
    here().observe(span_lost{now_->what.token, server, refusal::none});
    pump();
  }
}

} // namespace shoal::actors
