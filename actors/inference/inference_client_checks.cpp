// A client of an inference swarm: the checks of its servers. output_check.hpp decides who is wrong.
#include "actors/inference/inference_client.hpp"
#include "actors/inference/observations.hpp"
#include "actors/observe.hpp"
#include "kernels/base/check.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace shoal::actors {

bool inference_client::draws_check() {
  auto& now = *now_;
  if (options_.check == 0 || now.checked == now.chain.length()) return false;
  if (now.ends) return true;
  if (std::exchange(now.drawn, true)) return false;
  return checks_.uniform() < options_.check;
}

void inference_client::begin_check() {
  std::vector<output_check::computed_span> spans;
  for (const auto& each : now_->chain.computed_spans())
    spans.push_back({each.layers,
                     each.server,
                     each.since,
                     {each.inputs.begin(), each.inputs.end()},
                     {each.outputs.begin(), each.outputs.end()}});
  now_->check.emplace(std::move(spans), options_.ends->width(), check_tolerance(options_.codec));
  now_->passes = 0;
  now_->sought = now_->says_it_waits = false;
}

bool inference_client::seeks_servers() const {
  // A check that has looked up servers lacked one.
  return now_ && now_->check && now_->sought && now() < *now_->lacks_since + now_->patience;
}

bool inference_client::pump_check() {
  for (;;) {
    const auto next = now_->check->next();
    if (std::holds_alternative<output_check::waits>(next)) return true;
    if (const auto* open = std::get_if<output_check::needs_route>(&next)) {
      auto known = servers_.views(now());
      std::erase_if(known,
                    [&](const server_view& each) { return open->except.contains(each.peer); });
      // Other servers each time, so that two that lie together do not meet for ever.
      const auto route = weighted_route(known, open->layers, routes_);
      if (route.empty()) {
        // Servers may have come since the last look-up; the answer goes on with the check.
        now_->patience = open->decides ? options_.dispute_patience : options_.check_patience;
        if (!now_->lacks_since) now_->lacks_since = now();
        if (open->decides && !std::exchange(now_->says_it_waits, true))
          here().observe(check_waits{now_->what.token, open->layers});
        if (!std::exchange(now_->sought, true)) return ask_servers(), true;
        if (seeks_servers()) return true; // until the next look-up
        now_->check->unroutable();
      } else {
        now_->check->routed(route);
      }
    } else if (const auto* request = std::get_if<output_check::request>(&next)) {
      ask_for_pass(*request);
    } else {
      end_check(std::get<output_check::done>(next));
      return false;
    }
  }
}

void inference_client::ask_for_pass(const output_check::request& what) {
  auto* server = servers_.find(what.server);
  if (server == nullptr) {
    now_->check->lost(what.server);
    return;
  }
  if (!std::exchange(server->watched, true)) monitor(server->address);
  check_flight_ = ++last_token_;
  now_->check->sent(check_flight_);
  ++now_->passes;
  const auto rows = what.activations.size() / options_.ends->width();
  pass_request out;
  out.reply_to = address();
  out.token = check_flight_;
  out.first = what.layers.first;
  out.last = what.layers.last;
  out.samples = 1;
  out.time = static_cast<std::uint32_t>(rows);
  out.codec = static_cast<std::uint8_t>(options_.codec);
  auto packed = pack_activations(options_.codec, what.activations, options_.ends->width());
  SHOAL_CHECK(packed.ok(), "the chain holds finite values alone");
  out.activations = std::move(*packed);
  const double computing = static_cast<double>(server->record.layer_ns) * 1e-9 *
                           static_cast<double>(rows * what.layers.count());
  send(server->address, std::move(out));
  set_timer(options_.step_timeout + from_seconds(4 * computing), check_late, check_flight_);
}

void inference_client::receive(const pass_output& m) {
  if (!now_ || !now_->check || now_->check->asked(m.token) != sender_peer()) return;
  const auto rows = now_->chain.length();
  const auto values =
      unpack_activations(options_.codec, m.activations, rows, options_.ends->width());
  if (!values || !now_->check->answered(m.token, *values)) lose_check(m.token, true);
  pump();
}

void inference_client::lose_check(std::uint64_t token, bool bans) {
  const auto server = now_->check->asked(token);
  if (!server) return;
  if (bans) servers_.ban(*server, now());
  now_->check->lost(*server);
}

void inference_client::end_check(const output_check::done& found) {
  auto& now = *now_;
  here().observe(outputs_checked{now.what.token, now.chain.length(), now.passes,
                                 found.found == output_check::verdict::disputed, found.unchecked});
  now.check.reset();
  now.checked = now.chain.length();
  now.disputed = found.found == output_check::verdict::disputed;
  if (found.found != output_check::verdict::wrong) {
    if (found.found == output_check::verdict::right && found.unchecked == 0 && options_.on_checked)
      options_.on_checked(now.what.token, now.tokens.size());
    return;
  }
  now.checked = 0; // the later spans are not checked yet
  std::size_t kept = now.tokens.size();
  if (found.from) {
    forget_pushes();
    // Token i of the text follows from the output of token prompt - 1 + i.
    const auto prompt = now.what.prompt.size();
    kept = std::min(kept, std::max(found.from->token + 1, prompt) - prompt);
    now.chain.rollback(prompt + kept);
    now.chain.forget_outputs(found.from->span, found.from->token);
  }
  const auto retracted = now.tokens.size() - kept;
  for (const auto server : found.servers)
    here().observe(wrong_server{now.what.token, server, kept, retracted});
  for (const auto server : found.servers) {
    servers_.distrust(server);
    for (const auto& each : now.chain.holders())
      if (each.server == server)
        if (const auto* at = servers_.find(server)) send(at->address, session_closed{each.session});
    now.chain.lost(server);
  }
  if (!found.from) return;
  now.ends = false;
  now.drawn = true; // the next token is chosen before another check
  if (kept < now.draws.size()) now.random = now.draws[kept];
  now.draws.erase(now.draws.begin() + static_cast<std::ptrdiff_t>(std::min(now.draws.size(), kept)),
                  now.draws.end());
  now.tokens.resize(kept);
  if (retracted > 0 && options_.on_retract) options_.on_retract(now.what.token, kept);
}

} // namespace shoal::actors
