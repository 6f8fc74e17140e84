#include "actors/inference/inference_server.hpp"

#include "actors/dht/messages.hpp"
#include "actors/inference/observations.hpp"
#include "actors/inference/probes.hpp"
#include "actors/observe.hpp"
#include "kernels/base/check.hpp"

#include <caf/actor_cast.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace shoal::actors {

inference_server::inference_server(caf::actor_config& config, host& on,
                                   inference_server_config options)
    : protocol_actor(config, on), options_(std::move(options)), sessions_(options_.limits) {
  SHOAL_CHECK(options_.layers.count() > 0 && options_.blocks.size() == options_.layers.count(),
              "a server has a block for each of its layers");
}

void inference_server::on_exit() {
  options_.dht = nullptr;
  steps_.clear();
  passes_.clear();
  running_.reset();
  protocol_actor::on_exit();
}

caf::behavior inference_server::make_behavior() {
  publish();
  set_timer(options_.record_lifetime / 3, renew);
  return {
      [this](const inference_step& m) { receive(m); },
      [this](const pass_request& m) { receive(m); },
      [this](const session_closed& m) {
        sessions_.close({sender_peer(), m.session});
        note_if_drained();
      },
      [this](const work_done&) { computed(); },
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
        }
      },
  };
}

void inference_server::publish() {
  const server_record mine{options_.layers, static_cast<std::uint64_t>(options_.layer_time.count()),
                           sessions_.left(), options_.model_digest, draining_};
  record entry;
  entry.subkey = fmt::format("{:016x}", here().id());
  entry.address = address();
  entry.value = mine.pack();
  entry.expires_utc_ns = here().utc_ns() + options_.record_lifetime.count();
  send(options_.dht, store{servers_key(options_.model), std::move(entry)});
}

/// Passes without state are short, and their clients send them elsewhere again.
void inference_server::note_if_drained() {
  if (draining_ && sessions_.size() == 0 && !std::exchange(drained_, true))
    here().observe(server_drained{});
}

void inference_server::receive(const inference_step& m) {
  if (!is_senders(m.reply_to)) return misbehaviour(0, "a step whose answer goes to another host");
  here().probe(inference_probes::step_received);
  job step;
  step.key = {sender_peer(), m.session};
  step.reply_to = m.reply_to;
  step.token = m.token;
  step.layers = {m.first, m.last};
  step.samples = m.samples;
  step.most = m.most;
  step.from = m.from;
  step.time = m.time;
  step.order.assign(m.order.begin(), m.order.end());
  enqueue_job(std::move(step), m.codec, m.activations, {});
}

void inference_server::receive(const pass_request& m) {
  if (!is_senders(m.reply_to)) return misbehaviour(0, "a pass whose answer goes to another host");
  job pass;
  pass.key = {sender_peer(), 0};
  pass.reply_to = m.reply_to;
  pass.token = m.token;
  pass.layers = {m.first, m.last};
  pass.samples = m.samples;
  pass.time = m.time;
  pass.is_pass = true;
  enqueue_job(std::move(pass), m.codec, m.activations, m.gradient);
}

void inference_server::enqueue_job(job what, std::uint8_t codec, const payload& values,
                                   const payload& gradient) {
  const auto mine = held();
  if (what.layers.first < mine.first || what.layers.first >= what.layers.last ||
      what.layers.last > mine.last)
    return refuse(what, refusal::wrong_layers);
  const auto context = options_.blocks.front()->context();
  if (what.samples == 0 || what.samples > 1 << 16 || what.time == 0 || what.time > context ||
      what.from > context || (!what.is_pass && (what.most == 0 || what.most > context)))
    return refuse(what, refusal::wrong_position);
  const auto sequences = static_cast<std::int64_t>(what.samples);
  if (!what.order.empty() && (what.order.size() != what.samples ||
                              std::any_of(what.order.begin(), what.order.end(),
                                          [&](std::int64_t row) { return row >= sequences; })))
    return refuse(what, refusal::wrong_values);
  const auto form = activation_codec(codec);
  const auto rows = what.samples * what.time, width = options_.blocks.front()->width();
  if (!form) return refuse(what, refusal::wrong_values);
  what.codec = *form;
  auto floats = unpack_activations(*form, values, rows, width);
  auto slopes = gradient.empty() ? result<std::vector<float>>(std::vector<float>{})
                                 : unpack_activations(*form, gradient, rows, width);
  if (!floats || !slopes) return refuse(what, refusal::wrong_values);
  what.values = std::move(*floats);
  what.gradient = std::move(*slopes);
  if (steps_.size() + passes_.size() >= options_.most_waiting)
    return refuse(what, refusal::too_many);
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
      auto cache = options_.blocks[layer - held().first]->make_cache(step.samples, step.most);
      if (!cache) return refusal::wrong_position;
      made.caches.push_back(std::make_shared<learn::kv_cache>(std::move(*cache)));
    }
    session = &sessions_.open(step.key, std::move(made), now());
    const auto [client, is_new] =
        clients_.try_emplace(caf::actor_cast<caf::actor_addr>(step.reply_to));
    if (is_new) monitor(step.reply_to);
    auto& theirs = client->second;
    std::erase_if(theirs, [this](const auto& each) { return sessions_.find(each) == nullptr; });
    theirs.insert(step.key);
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

void inference_server::start_batch() {
  if (running_) return;
  auto next = std::make_shared<batch>();
  std::uint64_t tokens = 0, work = 0;
  const auto add = [&](job what) {
    tokens += what.samples * what.time;
    work += what.samples * what.time * what.layers.count() * (what.gradient.empty() ? 1 : 3);
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
    if (const auto why = prepare(step); why != refusal::none) {
      refuse(step, why);
      continue;
    }
    taken.insert(step.key);
    add(std::move(step));
  }
  steps_ = std::move(later);
  if (next->jobs.empty() && !passes_.empty()) {
    add(std::move(passes_.front()));
    passes_.pop_front();
  }
  if (next->jobs.empty()) return;
  running_ = next;
  here().probe(inference_probes::batch_begun);
  const auto time = options_.batch_time + options_.layer_time * static_cast<std::int64_t>(work);
  here().run(
      "inference",
      [next, layers = held(), blocks = options_.blocks] { compute(*next, layers, blocks); }, time,
      caf::actor_cast<caf::actor>(this), 0);
}

void inference_server::compute(
    batch& what, layer_span layers,
    const std::vector<std::shared_ptr<const learn::served_block>>& blocks) {
  for (auto& job : what.jobs)
    for (const auto& cache : job.caches)
      if (!cache->rollback(job.from) || (!job.order.empty() && !cache->reorder(job.order)))
        job.failed = true;
  const auto covers = [](const job& of, std::uint32_t layer) {
    return !of.failed && of.layers.first <= layer && layer < of.layers.last;
  };
  for (auto layer = layers.first; layer < layers.last; ++layer) {
    const auto& block = *blocks[layer - layers.first];
    std::vector<learn::cached_step> steps;
    std::vector<job*> of;
    for (auto& job : what.jobs)
      if (!job.is_pass && covers(job, layer)) {
        steps.push_back({job.caches[layer - job.layers.first].get(), job.time, job.values});
        of.push_back(&job);
      }
    if (steps.empty() || block.extend(steps)) continue;
    // One session's values have overflowed. The others go on.
    for (std::size_t i = 0; i < steps.size(); ++i)
      if (!block.extend({&steps[i], 1})) of[i]->failed = true;
  }
  for (auto& job : what.jobs) {
    if (!job.is_pass) continue;
    const learn::pass_shape shape{static_cast<std::int64_t>(job.samples),
                                  static_cast<std::int64_t>(job.time)};
    std::vector<std::vector<float>> entered;
    const auto apply = [&](auto&& made) {
      if (made)
        job.values = std::move(*made);
      else
        job.failed = true;
    };
    for (auto layer = job.layers.first; covers(job, layer); ++layer) {
      entered.push_back(job.values);
      apply(blocks[layer - layers.first]->forward(shape, job.values));
    }
    if (job.gradient.empty() || job.failed) continue;
    job.values = job.gradient;
    for (auto layer = job.layers.last; layer-- > job.layers.first && !job.failed;)
      apply(blocks[layer - layers.first]->backward(shape, entered[layer - job.layers.first],
                                                   job.values));
  }
}

void inference_server::computed() {
  if (!running_) return;
  here().probe(inference_probes::batch_computed);
  const auto done = std::exchange(running_, nullptr);
  batch_done seen{done->jobs.size(), 0, sessions_.size()};
  for (auto& job : done->jobs) {
    seen.tokens += job.samples * job.time;
    if (auto* session = job.is_pass ? nullptr : sessions_.find(job.key)) session->busy = false;
    auto output = job.failed ? result<payload>(failure{})
                             : pack_activations(job.codec, std::move(job.values),
                                                options_.blocks.front()->width());
    if (!output) {
      // The caches of the session's layers differ now, or hold values that overflowed.
      if (!job.is_pass) sessions_.close(job.key);
      refuse(job, refusal::wrong_values);
      continue;
    }
    send(job.reply_to, inference_output{job.key.second, job.token, std::move(*output)});
    here().probe(inference_probes::output_sent);
  }
  here().observe(seen);
  start_batch();
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
