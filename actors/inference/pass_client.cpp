#include "actors/inference/pass_client.hpp"

#include "actors/inference/activations.hpp"
#include "actors/inference/observations.hpp"
#include "actors/observe.hpp"
#include "kernels/base/check.hpp"
#include "kernels/reduce_weighted_mean.hpp"

#include <caf/actor_cast.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace shoal::actors {

pass_client::pass_client(caf::actor_config& config, host& on, pass_client_config options)
    : protocol_actor(config, on), options_(std::move(options)),
      servers_({options_.model_digest, options_.layers}),
      routes_(on.random_stream("inference.pass_routes")) {
  SHOAL_CHECK(options_.layers > 0 && options_.width > 0 && options_.piece_tokens > 0,
              "a client knows the size of its model");
}

void pass_client::on_exit() {
  options_.dht = nullptr;
  servers_.clear();
  passes_.clear();
  protocol_actor::on_exit();
}

caf::behavior pass_client::make_behavior() {
  return {
      [this](const layers_forward& m) { receive(m); },
      [this](const layers_backward& m) { receive(m); },
      [this](const found& m) {
        servers_.read(m, here());
        looked_ = true;
        pump();
      },
      [this](const pass_output& m) { receive(m); },
      [this](const inference_refused& m) {
        const auto found = flights_.find(m.token);
        if (found == flights_.end() || found->second.server != sender_peer()) return;
        lose(m.token, m.why <= static_cast<std::uint8_t>(refusal::drains)
                          ? static_cast<refusal>(m.why)
                          : refusal::wrong_values);
      },
      [this](const tick& t) {
        if (t.kind == look_up && t.token == look_ups_) {
          asks_ = false;
          if (!passes_.empty()) ask_servers();
        }
        if (t.kind == late && flights_.contains(t.token)) lose(t.token, refusal::none);
      },
  };
}

void pass_client::ask_servers() {
  send(options_.dht, lookup{servers_key(options_.model), address(), 0});
  const bool waits = std::any_of(passes_.begin(), passes_.end(),
                                 [](const auto& each) { return each.second.missing.has_value(); });
  asks_ = true;
  set_timer(waits ? options_.retry : options_.look_up_every, look_up, ++look_ups_);
}

void pass_client::fail(const caf::actor& to, std::uint64_t token, std::string why) {
  send(to, layers_done{token, {}, {}, std::move(why)});
}

void pass_client::receive(const layers_forward& m) {
  auto input = floats_of(m.activations);
  const auto prompts = floats_of(m.prompts);
  const std::size_t row = m.time * options_.width, layers = m.last - m.first;
  if (passes_.contains(m.token)) return fail(m.reply_to, m.token, "a pass has this number");
  if (m.first >= m.last || m.last > options_.layers)
    return fail(
        m.reply_to, m.token,
        fmt::format("no layers {}:{}: the model has 0:{}", m.first, m.last, options_.layers));
  if (m.samples == 0 || m.time == 0 || input.size() != m.samples * row)
    return fail(m.reply_to, m.token,
                fmt::format("{} activations for {} sequences of {} tokens of width {}",
                            input.size(), m.samples, m.time, options_.width));
  if (!kernels::all_finite(input) || !kernels::all_finite(prompts))
    return fail(m.reply_to, m.token, "a value of the activations or prompts is not finite");
  if (m.prompt_length > m.time || prompts.size() != layers * m.prompt_length * options_.width)
    return fail(m.reply_to, m.token,
                fmt::format("{} values of prompts for {} layers and {} of {} tokens",
                            prompts.size(), layers, m.prompt_length, m.time));
  auto& made = passes_[m.token];
  made.what = m;
  made.what.activations = {};
  made.answered = false;
  const auto most = std::max<std::size_t>(1, options_.piece_tokens / m.time);
  for (std::size_t s = 0; s < m.samples; s += most) {
    const auto count = std::min(most, m.samples - s);
    std::vector<float> part(input.begin() + static_cast<std::ptrdiff_t>(s * row),
                            input.begin() + static_cast<std::ptrdiff_t>((s + count) * row));
    made.pieces.push_back(
        {pass_chain({m.first, m.last}, std::move(part), m.prompt_length * options_.width), count});
  }
  if (!asks_) ask_servers();
  if (looked_) pump();
}

void pass_client::receive(const layers_backward& m) {
  const auto found = passes_.find(m.token);
  if (found == passes_.end()) return;
  auto& of = found->second;
  if (m.gradient.empty()) {
    std::erase_if(flights_, [&](const auto& each) { return each.second.pass == m.token; });
    passes_.erase(found);
    return;
  }
  const auto gradient = floats_of(m.gradient);
  const std::size_t row = of.what.time * options_.width;
  if (!of.answered || of.back || gradient.size() != of.what.samples * row)
    return fail(of.what.reply_to, m.token,
                "a gradient of another size than the output, or before it");
  if (!kernels::all_finite(gradient))
    return fail(of.what.reply_to, m.token, "a value of the gradient is not finite");
  of.back = true;
  of.answered = false;
  std::size_t at = 0;
  for (auto& each : of.pieces) {
    const auto end = at + each.samples * row;
    each.chain.back({gradient.begin() + static_cast<std::ptrdiff_t>(at),
                     gradient.begin() + static_cast<std::ptrdiff_t>(end)});
    at = end;
  }
  pump();
}

void pass_client::receive(const pass_output& m) {
  const auto found = flights_.find(m.token);
  if (found == flights_.end() || found->second.server != sender_peer()) return;
  const auto flight = found->second;
  auto& of = passes_.at(flight.pass);
  auto& chain = of.pieces[flight.piece].chain;
  auto values = unpack_activations(options_.codec, m.activations, flight.rows, options_.width,
                                   options_.sized);
  const auto prompts = floats_of(m.prompts);
  if (!values || !kernels::all_finite(prompts) ||
      !chain.answered(m.token, std::move(*values), prompts))
    return lose(m.token, refusal::wrong_values);
  flights_.erase(found);
  servers_.answered(flight.server);
  pump();
}

void pass_client::pump() {
  // finish() may end a pass, and pump() of one starts none.
  std::vector<std::uint64_t> tokens;
  for (const auto& each : passes_) tokens.push_back(each.first);
  for (const auto token : tokens)
    if (const auto found = passes_.find(token); found != passes_.end()) pump(token, found->second);
}

void pass_client::pump(std::uint64_t token, pass& of) {
  bool all = true;
  for (std::size_t i = 0; i < of.pieces.size(); ++i)
    for (bool goes_on = true; goes_on;) {
      const auto next = of.pieces[i].chain.next();
      goes_on = false;
      all = all && std::holds_alternative<pass_chain::done>(next);
      if (const auto* open = std::get_if<pass_chain::needs_route>(&next))
        goes_on = plan(token, of, of.pieces[i].chain, open->layers);
      else if (const auto* request = std::get_if<pass_chain::request>(&next))
        goes_on = !dispatch(token, of, i, *request);
    }
  if (all && !of.answered) finish(token, of);
}

bool pass_client::plan(std::uint64_t token, pass& of, pass_chain& chain, layer_span layers) {
  const auto known = servers_.views(now());
  const auto route =
      options_.spreads ? weighted_route(known, layers, routes_) : fastest_route(known, layers, 0);
  if (route.empty()) {
    const auto missing = uncovered(known, layers).value_or(layers);
    const auto before = std::exchange(of.missing, missing);
    if (before != missing) here().observe(layers_missing{token, missing});
    if (!before) set_timer(options_.retry, look_up, ++look_ups_);
    return false;
  }
  of.missing.reset();
  chain.routed(layers, route);
  here().observe(route_chosen{token, route});
  return true;
}

bool pass_client::dispatch(std::uint64_t token, pass& of, std::size_t index,
                           const pass_chain::request& request) {
  auto& piece = of.pieces[index];
  auto* server = servers_.find(request.server);
  if (server == nullptr) {
    piece.chain.lost(request.server);
    return false;
  }
  if (!std::exchange(server->watched, true)) monitor(server->address);
  const auto rows = piece.samples * of.what.time;
  const auto pack = [&](std::span<const float> values) {
    auto out = pack_activations(options_.codec, {values.begin(), values.end()}, options_.width,
                                options_.sized);
    SHOAL_CHECK(out.ok(), "the chain holds finite values alone");
    return std::move(*out);
  };
  pass_request out;
  out.reply_to = address();
  out.token = ++last_request_;
  out.first = request.layers.first;
  out.last = request.layers.last;
  out.samples = static_cast<std::uint32_t>(piece.samples);
  out.time = of.what.time;
  out.codec = static_cast<std::uint8_t>(options_.codec);
  out.activations = pack(request.input);
  if (!request.gradient.empty()) out.gradient = pack(request.gradient);
  out.prompt_length = of.what.prompt_length;
  if (out.prompt_length > 0) {
    const auto each = out.prompt_length * options_.width * sizeof(float);
    out.prompts =
        of.what.prompts.slice((out.first - of.what.first) * each, request.layers.count() * each);
  }
  out.adapter = of.what.adapter;
  piece.chain.sent(out.token);
  flights_[out.token] = {token, index, request.server, rows, !request.gradient.empty()};
  // Pieces before this one may wait at the same server.
  const auto work = rows * request.layers.count() * of.pieces.size() * (of.back ? 3 : 1);
  const auto computing = duration(static_cast<std::int64_t>(server->record.layer_ns * work));
  set_timer(options_.timeout + 4 * computing, late, out.token);
  send(server->address, std::move(out));
  return true;
}

void pass_client::finish(std::uint64_t token, pass& of) {
  of.answered = true;
  layers_done out;
  out.token = token;
  std::vector<float> values, prompts;
  std::uint64_t repeated = 0;
  for (auto& each : of.pieces) {
    const auto& part = of.back ? each.chain.gradient() : each.chain.output();
    values.insert(values.end(), part.begin(), part.end());
    repeated += each.chain.repeated() - each.shown;
    each.shown = each.chain.repeated();
    if (!of.back) continue;
    const auto& slopes = each.chain.prompt_gradient();
    prompts.resize(slopes.size());
    for (std::size_t i = 0; i < slopes.size(); ++i) prompts[i] += slopes[i];
  }
  out.activations = payload{std::move(values)};
  if (!prompts.empty()) out.prompts = payload{std::move(prompts)};
  send(of.what.reply_to, std::move(out));
  here().observe(request_done{token, of.what.samples * std::uint64_t{of.what.time}, repeated});
  if (of.back) passes_.erase(token);
}

void pass_client::lose(std::uint64_t request, refusal why) {
  const auto flight = flights_.at(request);
  here().observe(span_lost{flight.pass, flight.server, why});
  servers_.ban(flight.server, now());
  forget(flight.server);
  pump();
}

/// Opens all spans of a server.
void pass_client::forget(peer_id server) {
  std::erase_if(flights_, [&](const auto& each) { return each.second.server == server; });
  for (auto& [token, of] : passes_)
    for (auto& piece : of.pieces) piece.chain.lost(server);
}

void pass_client::on_down(const caf::actor_addr& whom) {
  const auto server = servers_.gone(whom);
  if (!server) return;
  const bool used = std::any_of(flights_.begin(), flights_.end(),
                                [&](const auto& each) { return each.second.server == *server; });
  if (used) here().observe(span_lost{0, *server, refusal::none});
  forget(*server);
  pump();
}

} // namespace shoal::actors
