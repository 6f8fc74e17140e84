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

std::uint32_t layers_of(const inference_client_config& what) {
  SHOAL_CHECK(what.ends != nullptr, "a client has the ends of its model");
  return static_cast<std::uint32_t>(what.ends->layers());
}

} // namespace

inference_client::inference_client(caf::actor_config& config, host& on,
                                   inference_client_config options)
    : protocol_actor(config, on), options_(std::move(options)),
      servers_({.model = options_.model_digest,
                .layers = layers_of(options_),
                .ban = options_.ban,
                .unknown_round_trip = options_.unknown_round_trip,
                .overhead = options_.step_overhead}),
      names_(on.random_stream(options_.instance == 0
                                  ? std::string{"inference.sessions"}
                                  : fmt::format("inference.sessions.{}", options_.instance))),
      routes_(on.random_stream("inference.routes")), checks_(on.random_stream("inference.checks")) {
  SHOAL_CHECK(options_.beams > 0, "a client has a beam");
  SHOAL_CHECK(options_.check == 0 || (options_.beams == 1 && options_.sized == 0),
              "a text of one sequence with values is checked");
  SHOAL_CHECK(activation_codec(static_cast<std::uint8_t>(options_.codec)),
              "activations have this codec");
}

void inference_client::on_exit() {
  options_.dht = nullptr;
  options_.on_token = nullptr;
  options_.on_retract = nullptr;
  options_.on_checked = nullptr;
  servers_.clear();
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
      [this](const found& m) {
        servers_.read(m, here());
        looked_ = true;
        if (now_)
          pump();
        else
          begin();
      },
      [this](const inference_output& m) {
        if (!now_ || !is_from_holder(m.session)) return;
        const auto pushed = pushed_.find(m.session);
        if (m.token == flight_) {
          take(m, sender_peer());
          pump();
        } else if (pushed != pushed_.end() && pushed->second.token == m.token) {
          early_.insert_or_assign(m.token, std::pair{sender_peer(), m});
        }
      },
      [this](const pass_output& m) { receive(m); },
      [this](const inference_refused& m) {
        if (now_ && now_->check && now_->check->asked(m.token) == sender_peer()) {
          lose_check(m.token, true);
          return pump();
        }
        if (!now_ || !is_from_holder(m.session)) return;
        if (m.token != flight_) {
          const auto pushed = pushed_.find(m.session);
          if (pushed != pushed_.end() && pushed->second.token == m.token) pushed_.erase(pushed);
          return;
        }
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
        if (t.kind == push_late && now_ && was_pushed_ && t.token == flight_ &&
            now_->chain.unsent(t.token))
          pump();
        if (t.kind == check_late && now_ && now_->check && now_->check->asked(t.token)) {
          lose_check(t.token, true);
          pump();
        }
        if (t.kind == step_late && now_ && t.token == flight_)
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
    set_timer((now_ && now_->missing) || seeks_servers() ? options_.retry : options_.look_up_every,
              look_up, ++look_ups_);
}

void inference_client::begin() {
  while (!now_ && !queue_.empty()) {
    if (!looked_) return ask_servers();
    auto what = std::move(queue_.front());
    queue_.pop_front();
    const auto all = what.prompt.size() + what.count;
    std::string why;
    auto first = options_.ends->embed(what.prompt, 0);
    if (what.prompt.empty())
      why = "the prompt is empty: it needs at least one token";
    else if (!first)
      why = first.error();
    else if (all > options_.ends->context())
      why = fmt::format("{} tokens after a prompt of {} are more than the model's context of {}",
                        what.count, what.prompt.size(), options_.ends->context());
    if (!why.empty() || what.count == 0) {
      send(what.reply_to, generated{what.token, {}, why, false});
      continue;
    }
    auto random = stream(options_.seed, "sampling", options_.draws_as.value_or(what.token));
    now_.emplace(
        running{std::move(what),
                span_chain(static_cast<std::uint32_t>(options_.ends->layers()), options_.beams, all,
                           options_.ends->width(), options_.check > 0),
                std::move(random), learn::beam_search(options_.beams)});
    std::vector<float> prompts; // each beam begins with the prompt
    for (std::size_t i = 0; i < options_.beams; ++i)
      prompts.insert(prompts.end(), first->begin(), first->end());
    now_->chain.feed(prompts);
    set_timer(options_.look_up_every, look_up, ++look_ups_);
    pump();
  }
}

bool inference_client::plan(layer_span layers) {
  const auto known = servers_.views(now());
  const auto route = options_.spreads
                         ? weighted_route(known, layers, routes_)
                         : fastest_route(known, layers, now_->chain.most() * now_->chain.samples());
  if (route.empty()) {
    const auto missing = uncovered(known, layers).value_or(layers);
    const auto before = std::exchange(now_->missing, missing);
    // A server whose ban ends, or that comes, changes what is missing.
    if (before != missing) here().observe(layers_missing{now_->what.token, missing});
    if (!before) set_timer(options_.retry, look_up, ++look_ups_);
    return false;
  }
  now_->missing.reset();
  std::vector<std::uint64_t> sessions;
  for (std::size_t i = 0; i < route.size(); ++i) sessions.push_back(names_.next());
  now_->chain.routed(layers, route, sessions);
  here().observe(route_chosen{now_->what.token, route});
  return true;
}

void inference_client::pump() {
  while (now_) {
    if (now_->check) {
      if (pump_check()) return;
      continue;
    }
    auto next = now_->chain.next();
    if (std::holds_alternative<span_chain::waits>(next)) return;
    if (const auto* open = std::get_if<span_chain::needs_route>(&next)) {
      if (!plan(open->layers)) return;
    } else if (const auto* step = std::get_if<span_chain::request>(&next)) {
      dispatch(*step);
    } else if (draws_check()) {
      begin_check();
    } else if (now_->ends) {
      finish();
    } else {
      token_from(now_->chain.take(1));
    }
  }
}

void inference_client::dispatch(const span_chain::request& step) {
  auto* server = servers_.find(step.server);
  if (server == nullptr) {
    now_->chain.lost(step.server);
    return;
  }
  if (!std::exchange(server->watched, true)) monitor(server->address);
  const auto pushed = pushed_.find(step.session);
  if (pushed != pushed_.end()) {
    const auto [token, from, time] = pushed->second;
    pushed_.erase(pushed);
    if (from == step.from && time == step.time) return expect(step, *server, token);
  }
  begin_flight(step, *server, ++last_token_);
  inference_step out;
  out.reply_to = address();
  out.session = step.session;
  out.token = flight_;
  out.first = step.layers.first;
  out.last = step.layers.last;
  out.samples = static_cast<std::uint32_t>(now_->chain.samples());
  out.most = static_cast<std::uint32_t>(now_->chain.most());
  out.from = static_cast<std::uint32_t>(step.from);
  out.time = static_cast<std::uint32_t>(step.time);
  out.codec = static_cast<std::uint8_t>(options_.codec);
  out.push = hops_after(step);
  auto packed =
      pack_activations(options_.codec, step.activations, options_.ends->width(), options_.sized);
  SHOAL_CHECK(packed.ok(), "the chain holds finite values alone");
  out.activations = std::move(*packed);
  out.order = step.order;
  send(server->address, std::move(out));
  set_timer(options_.step_timeout + from_seconds(4 * computing_), step_late, flight_);
}

void inference_client::begin_flight(const span_chain::request& step,
                                    const server_pool::server& server, std::uint64_t token) {
  now_->chain.sent(step, token);
  flight_ = token;
  was_pushed_ = false;
  sent_ = now();
  computing_ = static_cast<double>(server.record.layer_ns) * 1e-9 *
               static_cast<double>(step.time * step.layers.count());
  rows_ = now_->chain.samples() * step.time;
}

void inference_client::expect(const span_chain::request& step, const server_pool::server& server,
                              std::uint64_t token) {
  begin_flight(step, server, token);
  was_pushed_ = true;
  if (const auto early = early_.extract(token))
    return take(early.mapped().second, early.mapped().first);
  set_timer(options_.push_timeout + from_seconds(4 * computing_), push_late, token);
}

std::vector<push_hop> inference_client::hops_after(const span_chain::request& step) {
  std::vector<push_hop> out;
  if (!options_.push || options_.beams > 1 || step.from == 0) return out;
  const auto holders = now_->chain.holders();
  for (auto i = step.span + 1; i < holders.size(); ++i) {
    const auto& next = holders[i];
    auto* server = next.server ? servers_.find(*next.server) : nullptr;
    if (server == nullptr || next.have != step.from || next.known != step.from) break;
    if (!std::exchange(server->watched, true)) monitor(server->address);
    pushed_[next.session] = {++last_token_, step.from, step.time};
    out.push_back(
        {server->address, next.session, last_token_, next.layers.first, next.layers.last});
  }
  return out;
}

void inference_client::take(const inference_output& m, peer_id from) {
  const auto values = unpack_activations(options_.codec, m.activations, rows_,
                                         options_.ends->width(), options_.sized);
  if (!values || !now_->chain.answered(m.token, *values)) {
    if (const auto lost = now_->chain.lost_request(m.token))
      lose(*lost, refusal::wrong_values, true);
    return;
  }
  // A pushed step began at a time that the client does not know.
  if (was_pushed_)
    servers_.answered(from);
  else
    servers_.answered(from, std::max(0.0, to_seconds(now() - sent_) - computing_));
}

void inference_client::beams_from(const std::vector<float>& logits) {
  now_->search.step(logits);
  if (now_->search.best().size() < now_->what.count) {
    now_->chain.reorder(now_->search.parents());
    return feed(now_->search.last_tokens());
  }
  for (const auto token : now_->search.best()) {
    if (options_.stop == token) break;
    accept(token);
  }
  finish();
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
  now_->drawn = false;
  if (options_.check > 0) now_->draws.push_back(now_->random);
  const auto token =
      static_cast<std::int64_t>(learn::choose(*logits, options_.sampling, now_->random));
  if (options_.stop != token) accept(token);
  if (options_.stop == token || now_->tokens.size() == now_->what.count) {
    now_->ends = true; // pump() goes on
    return;
  }
  const learn::token_id next[] = {token};
  feed(next);
}

void inference_client::feed(std::span<const learn::token_id> next) {
  std::vector<float> rows;
  for (const auto& token : next) {
    const auto row = options_.ends->embed({&token, 1}, now_->chain.length());
    SHOAL_CHECK(row.ok(), "the text fits into the context");
    rows.insert(rows.end(), row->begin(), row->end());
  }
  now_->chain.feed(rows);
}

void inference_client::close_sessions() {
  for (const auto& each : now_->chain.holders())
    if (each.server)
      if (const auto* server = servers_.find(*each.server))
        send(server->address, session_closed{each.session});
}

void inference_client::forget_pushes() {
  pushed_.clear();
  early_.clear();
}

void inference_client::finish() {
  forget_pushes();
  close_sessions();
  here().observe(request_done{now_->what.token, now_->tokens.size(), now_->chain.replayed()});
  send(now_->what.reply_to,
       generated{now_->what.token, std::move(now_->tokens), {}, now_->disputed});
  now_.reset();
  begin();
}

void inference_client::lose(const span_chain::lost_span& span, refusal why, bool bans) {
  here().observe(span_lost{now_->what.token, span.server, why});
  forget_pushes();
  const auto* server = servers_.find(span.server);
  if (server == nullptr) return;
  send(server->address, session_closed{span.session});
  if (!bans) return;
  servers_.ban(span.server, now());
  // The server may have other spans, which would only be refused later.
  for (const auto& each : now_->chain.holders())
    if (each.server == span.server) send(server->address, session_closed{each.session});
  now_->chain.lost(span.server);
}

void inference_client::on_down(const caf::actor_addr& whom) {
  const auto server = servers_.gone(whom);
  if (!server) return;
  const bool checked = now_ && now_->check && now_->check->lost(*server);
  // A check has copies of what it needs.
  if (now_ && now_->chain.lost(*server)) {
    forget_pushes();
    here().observe(span_lost{now_->what.token, *server, refusal::none});
    pump();
  } else if (checked) {
    pump();
  }
}

} // namespace shoal::actors
