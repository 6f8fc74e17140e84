#include "actors/inference/inference_server.hpp"

#include "actors/dht/host_record.hpp"
#include "actors/dht/messages.hpp"
#include "actors/inference/observations.hpp"
#include "actors/inference/probes.hpp"
#include "actors/observe.hpp"
#include "kernels/base/check.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace shoal::actors {

namespace {

constexpr std::size_t most_pushes = 1024;
constexpr std::size_t most_late_pushes = 64;
// A server reads the others' records again after this time, if a client names an unknown one.
constexpr auto servers_fresh = std::chrono::seconds(1);
constexpr std::uint64_t batch_work = 0; // work_done::token; inference_server_layers.cpp has others

std::size_t bytes_of(const inference_job& what) {
  return (what.values.size() + what.gradient.size() + what.prompts.size()) * sizeof(float);
}

std::uint32_t layers_of(const inference_server_config& what) {
  return what.placement ? what.placement->layers : what.layers.last;
}

} // namespace

inference_server::inference_server(caf::actor_config& config, host& on,
                                   inference_server_config options)
    : protocol_actor(config, on), options_(std::move(options)), sessions_(options_.limits),
      shares_(options_.most_waiting, options_.most_waiting_bytes),
      others_({.model = options_.model_digest, .layers = layers_of(options_)}),
      move_(options_.placement ? options_.placement->move : move_rules{}),
      choices_(on.random_stream("inference.placement")) {
  if (options_.placement) return;
  take(options_.layers, std::exchange(options_.held, {}));
}

void inference_server::take(layer_span layers, held_blocks blocks) {
  SHOAL_CHECK(layers.count() > 0 && blocks.blocks.size() == layers.count(),
              "a server has a block for each of its layers");
  options_.layers = layers;
  options_.held = std::move(blocks);
  models_.clear();
  const auto add = [&](const auto& of, const std::string& adapter) {
    SHOAL_CHECK(of.size() == layers.count(), "an adapter has all layers of the server");
    models_[adapter] = std::make_shared<const served_layers>(served_layers{layers, of});
  };
  add(options_.held.blocks, {});
  for (const auto& [name, each] : options_.held.adapters) add(each, name);
  // Sessions and work of the layers before go to other servers.
  sessions_ = session_table(options_.limits);
  for (auto* queue : {&steps_, &passes_})
    for (const auto& job : std::exchange(*queue, {})) {
      shares_.remove(job.whose, bytes_of(job));
      refuse(job, refusal::wrong_layers);
    }
}

void inference_server::on_exit() {
  options_.dht = nullptr;
  steps_.clear();
  passes_.clear();
  running_.reset();
  late_pushes_.clear();
  servers_.clear();
  target_.reset();
  others_.clear();
  options_.placement.reset();
  protocol_actor::on_exit();
}

caf::behavior inference_server::make_behavior() {
  publish();
  if (options_.placement) set_place_timer();
  set_timer(options_.record_lifetime / 3, renew);
  return placement_behavior().or_else(
      [this](const inference_step& m) { receive(m); },
      [this](const pass_request& m) { receive(m); },
      [this](const session_closed& m) {
        sessions_.close({sender_peer(), m.session});
        note_if_drained();
      },
      [this](const work_done& m) { m.token == batch_work ? computed() : loaded(); },
      [this](const tick& t) {
        if (t.kind == renew) {
          sessions_.expire(now());
          note_if_drained();
          publish();
          set_timer(options_.record_lifetime / 3, renew);
        } else if (t.kind == drain) {
          draining_ = true;
          publish();
          note_if_drained();
        } else if (t.kind == place) {
          send(options_.dht, lookup{servers_key(options_.model), address(), 0});
          set_place_timer();
        } else if (t.kind == move_late && t.token == move_.round() && move_.is_under_way()) {
          move_.end();
          target_.reset();
        }
      });
}

void inference_server::publish() {
  if (held().count() == 0) return;
  const auto layer_time = options_.layer_time + options_.layer_batch_time;
  const server_record mine{options_.layers, static_cast<std::uint64_t>(layer_time.count()),
                           sessions_.left(), options_.model_digest, draining_};
  send(options_.dht, store{servers_key(options_.model),
                           host_record(here(), address(), mine.pack(), options_.record_lifetime)});
}

/// Passes without state are short, and their clients send them elsewhere again.
void inference_server::note_if_drained() {
  if (draining_ && sessions_.size() == 0 && !std::exchange(drained_, true))
    here().observe(server_drained{});
}

void inference_server::receive(const inference_step& m) {
  const auto client = caf::actor_cast<caf::strong_actor_ptr>(m.reply_to);
  const session_table::key key{here().peer_of(client), m.session};
  if (m.pushed == 1) {
    // The name of a session is known to its client and the servers of its chain. A session may have
    // ended, and then the client finds out itself.
    const auto* session = sessions_.find(key);
    if (session == nullptr || m.from == 0 || m.from < session->length) return;
  } else if (!is_senders(m.reply_to)) {
    return sender_misbehaves("a step whose answer goes to another host");
  }
  here().probe(inference_probes::step_received);
  job step;
  step.key = key;
  step.whose = here().member_of(client);
  step.reply_to = m.reply_to;
  step.token = m.token;
  step.layers = {m.first, m.last};
  step.samples = m.samples;
  step.most = m.most;
  step.from = m.from;
  step.time = m.time;
  step.order.assign(m.order.begin(), m.order.end());
  step.prompt_length = m.prompt_length;
  if (m.push.size() <= most_pushes) step.push = m.push;
  enqueue_job(std::move(step), {m.codec, &m.activations, nullptr, &m.prompts, &m.adapter});
}

void inference_server::receive(const pass_request& m) {
  if (!is_senders(m.reply_to)) return sender_misbehaves("a pass whose answer goes to another host");
  job pass;
  pass.key = {sender_peer(), 0};
  pass.whose = sender_member();
  pass.reply_to = m.reply_to;
  pass.token = m.token;
  pass.layers = {m.first, m.last};
  pass.samples = m.samples;
  pass.time = m.time;
  pass.is_pass = true;
  pass.prompt_length = m.prompt_length;
  enqueue_job(std::move(pass), {m.codec, &m.activations, &m.gradient, &m.prompts, &m.adapter});
}

void inference_server::enqueue_job(job what, const parts& from) {
  const auto model = models_.find(*from.adapter);
  if (model == models_.end() || !model->second->cover(what.layers))
    return refuse(what, refusal::wrong_layers);
  what.model = model->second;
  const auto context = any_block().context();
  if (what.samples == 0 || what.samples > 1 << 16 || what.time == 0 || what.time > context ||
      what.from > context || (!what.is_pass && (what.most == 0 || what.most > context)))
    return refuse(what, refusal::wrong_position);
  const auto sequences = static_cast<std::int64_t>(what.samples);
  if (!what.order.empty() && (what.order.size() != what.samples ||
                              std::any_of(what.order.begin(), what.order.end(),
                                          [&](std::int64_t row) { return row >= sequences; })))
    return refuse(what, refusal::wrong_values);
  const auto form = activation_codec(from.codec);
  const auto rows = what.samples * what.time, width = any_block().width();
  if (!form || what.prompt_length > what.time) return refuse(what, refusal::wrong_values);
  what.codec = *form;
  const auto unpack = [&](const payload* packed) -> result<std::vector<float>> {
    if (packed == nullptr || packed->empty()) return std::vector<float>{};
    return unpack_activations(*form, *packed, rows, width, options_.sized);
  };
  auto floats = unpack_activations(*form, *from.values, rows, width, options_.sized);
  auto slopes = unpack(from.gradient);
  auto prompts = unpack_activations(kernels::codec::none, *from.prompts,
                                    what.prompt_length * what.layers.count(), width);
  if (!floats || !slopes || !prompts) return refuse(what, refusal::wrong_values);
  what.values = std::move(*floats);
  what.gradient = std::move(*slopes);
  what.prompts = std::move(*prompts);
  if (!shares_.fits(what.whose, bytes_of(what))) return refuse(what, refusal::too_many);
  shares_.add(what.whose, bytes_of(what));
  auto& queue = what.is_pass ? passes_ : steps_;
  queue.push_back(std::move(what));
  start_batch();
}

refusal inference_server::prepare(job& step) {
  auto* session = sessions_.find(step.key);
  if (session == nullptr) {
    if (step.from != 0) return refusal::unknown_session;
    if (draining_) return refusal::drains;
    if (step.time > step.most) return refusal::wrong_position;
    if (const auto why = sessions_.may_open(step.key, step.layers, step.samples, step.most);
        why != refusal::none)
      return why;
    session_table::session made{step.layers, step.samples, step.most};
    for (auto layer = step.layers.first; layer < step.layers.last; ++layer) {
      auto cache = step.model->of(layer).make_cache(step.samples, step.most);
      if (!cache) return refusal::wrong_position;
      made.caches.push_back(std::make_shared<learn::kv_cache>(std::move(*cache)));
    }
    session = &sessions_.open(step.key, std::move(made), now());
    const auto [client, is_new] =
        clients_.try_emplace(caf::actor_cast<caf::actor_addr>(step.reply_to));
    client->second.insert(step.key);
    if (is_new) monitor(step.reply_to);
    forget_idle_clients();
  }
  if (session->layers != step.layers || session->samples != step.samples)
    return refusal::wrong_layers;
  if (step.from > session->length || step.from + step.time > session->most)
    return refusal::wrong_position;
  session->length = step.from + step.time;
  session->used = now();
  session->busy = true;
  step.caches = session->caches;
  return refusal::none;
}

/// Forgets sessions that have ended, and clients without one. A host may open its sessions from
/// ever new actors.
void inference_server::forget_idle_clients() {
  for (auto at = clients_.begin(); at != clients_.end();) {
    std::erase_if(at->second, [this](const auto& each) { return sessions_.find(each) == nullptr; });
    if (at->second.empty()) {
      demonitor(at->first);
      at = clients_.erase(at);
    } else {
      ++at;
    }
  }
}

void inference_server::start_batch() {
  if (running_) return;
  auto next = std::make_shared<inference_batch>();
  std::uint64_t tokens = 0;
  const auto leaves = [this](const job& what) { shares_.remove(what.whose, bytes_of(what)); };
  const auto add = [&](job what) {
    tokens += what.samples * what.time;
    next->jobs.push_back(std::move(what));
  };
  std::set<session_table::key> taken;
  std::deque<job> later;
  while (!steps_.empty()) {
    auto step = std::move(steps_.front());
    steps_.pop_front();
    // A session's steps follow each other, so a batch has one of them.
    const bool fits =
        next->jobs.empty() || tokens + step.samples * step.time <= options_.batch_tokens;
    if (!fits || taken.contains(step.key)) {
      later.push_back(std::move(step));
      continue;
    }
    leaves(step);
    if (const auto why = prepare(step); why != refusal::none) {
      refuse(step, why);
      continue;
    }
    taken.insert(step.key);
    add(std::move(step));
  }
  steps_ = std::move(later);
  if (next->jobs.empty() && !passes_.empty()) {
    leaves(passes_.front());
    add(std::move(passes_.front()));
    passes_.pop_front();
  }
  if (next->jobs.empty()) return;
  running_ = next;
  here().probe(inference_probes::batch_begun);
  const server_speed speed{options_.batch_time, options_.layer_batch_time, options_.layer_time,
                           options_.context_time};
  here().run(
      "inference", [next] { compute(*next); }, time_of(*next, speed),
      caf::actor_cast<caf::actor>(this), batch_work);
}

void inference_server::computed() {
  if (!running_) return;
  here().probe(inference_probes::batch_computed);
  const auto done = std::exchange(running_, nullptr);
  batch_done seen{done->jobs.size(), 0, sessions_.size()};
  for (auto& job : done->jobs) {
    seen.tokens += job.samples * job.time;
    if (auto* session = job.is_pass ? nullptr : sessions_.find(job.key)) session->busy = false;
    const auto width = any_block().width();
    if (job.gradient.empty()) options_.conduct->computed_layers(job.values);
    auto output = job.failed
                      ? result<payload>(failure{})
                      : pack_activations(job.codec, std::move(job.values), width, options_.sized);
    // Gradients of prompts are few, and keep all bits.
    auto slopes = job.gradient.empty()
                      ? result<payload>(payload{})
                      : pack_activations(kernels::codec::none, std::move(job.prompts), width);
    if (!slopes) output = failure{};
    if (!output) {
      // The caches of the session's layers differ now, or hold values that overflowed.
      if (!job.is_pass) sessions_.close(job.key);
      refuse(job, refusal::wrong_values);
      continue;
    }
    if (!job.push.empty()) push(job, *output);
    if (job.is_pass)
      send(job.reply_to, pass_output{job.token, std::move(*output), std::move(*slopes)});
    else
      send(job.reply_to, inference_output{job.key.second, job.token, std::move(*output)});
    here().probe(inference_probes::output_sent);
  }
  here().observe(seen);
  start_batch();
}

void inference_server::push(const job& done, const payload& output) {
  const auto& next = done.push.front();
  if (!next.server) return;
  inference_step out;
  out.reply_to = done.reply_to;
  out.session = next.session;
  out.token = next.token;
  out.first = next.first;
  out.last = next.last;
  out.samples = static_cast<std::uint32_t>(done.samples);
  out.most = static_cast<std::uint32_t>(done.most);
  out.from = static_cast<std::uint32_t>(done.from);
  out.time = static_cast<std::uint32_t>(done.time);
  out.codec = static_cast<std::uint8_t>(done.codec);
  out.activations = output;
  out.push.assign(done.push.begin() + 1, done.push.end());
  out.pushed = 1;
  if (is_server(next.server)) return send(next.server, std::move(out));
  // A new server, or a host that has asked for nothing.
  const bool looks = !servers_looked_ || now() - *servers_looked_ >= servers_fresh;
  if (looks) {
    servers_looked_ = now();
    send(options_.dht, lookup{servers_key(options_.model), address(), 0});
  }
  if ((looks || !late_pushes_.empty()) && late_pushes_.size() < most_late_pushes)
    late_pushes_.push_back({next.server, std::move(out)});
}

bool inference_server::is_server(const caf::actor& whom) const {
  return servers_.contains(caf::actor_cast<caf::actor_addr>(whom));
}

void inference_server::read_servers(const found& m) {
  servers_.clear();
  for (const auto& each : m.records)
    if (const auto record = server_record::unpack(each->value);
        record && record->model == options_.model_digest && each->address)
      servers_.insert(caf::actor_cast<caf::actor_addr>(each->address));
  for (auto& each : std::exchange(late_pushes_, {}))
    if (is_server(each.server)) send(each.server, std::move(each.step));
}

void inference_server::refuse(const job& what, refusal why) {
  send(what.reply_to,
       inference_refused{what.key.second, what.token, static_cast<std::uint8_t>(why)});
}

void inference_server::on_down(const caf::actor_addr& whom) {
  const auto found = clients_.find(whom);
  if (found == clients_.end()) return;
  for (const auto& each : found->second) sessions_.close(each);
  clients_.erase(found);
  note_if_drained();
}

} // namespace shoal::actors
