#include "scenarios/workloads/prepared.hpp"

#include "actors/data/corpus.hpp"
#include "actors/training/low_rank_workload.hpp"
#include "kernels/base/text_fields.hpp"
#include "scenarios/methods/method.hpp"
#include "scenarios/schema/start_from.hpp"
#include "scenarios/workloads/workload.hpp"

#include <fmt/format.h>

#include <charconv>
#if SHOAL_WITH_LEARN
#include "kernels/learn/transformer.hpp"
#endif

namespace shoal::scenarios {

result<std::unique_ptr<prepared_workload>> prepare_workload(const scenario& from, bool needs_data) {
  return from.workload.definition().prepare(from, needs_data);
}

result<known_corpus> fixed_corpus(const scenario& from, const prepared_workload& work) {
  known_corpus out;
  const auto& given = from.data.corpus_root;
  if (!given.empty() && !read_hex(given, out.root))
    return failure{"data.corpus_root: the root of a corpus has 64 hexadecimal digits"};
  const auto source = work.source();
  if (!source) {
    if (given.empty())
      return failure{"data.corpus_root is missing, and this host has no data files to compute it "
                     "from: 'shoal check' prints it on a host that has them"};
    return out;
  }
  out.tree = actors::tree_of(*source, from.data.corpus_samples);
  if (!given.empty() && out.root != out.tree->root())
    return failure{fmt::format("data.corpus_root: the first {} samples of the data files have the "
                               "root {}, and the scenario names {}: other files, another seed, or "
                               "another number of samples",
                               from.data.corpus_samples, out.tree->root().hex(), given)};
  out.root = out.tree->root();
  return out;
}

result<void> save_checkpoint(const scenario& from, const kernels::optimizer_config& optimizer,
                             const std::string& data_digest, const actors::model_state& state,
                             std::uint64_t data_from, const std::string& path) {
  auto out = shape_of(from);
  if (!out) return failure{out.error()};
  out->optimizer = optimizer;
  out->epoch = state.epoch;
  out->step = state.step;
  out->samples = state.samples;
  out->data_from = data_from;
  out->state_id = state.id.hex();
  out->notes = {{"scenario", from.name}, {"seed", std::to_string(from.seed)}};
  if (!data_digest.empty()) out->notes["data_digest"] = data_digest;
  const auto parameters = state.parameters.floats();
  out->parameters.assign(parameters.begin(), parameters.end());
  if (from.averaging.power_sgd_rank > 0) {
    const auto how = low_rank_of(from);
    if (!how) return failure{how.error()};
    out->power_sgd_rank = how->rank();
    out->power_sgd_values = how->state_size();
  }
  if (!state.optimizer.empty()) {
    const auto moments = state.optimizer.bytes();
    out->optimizer_state.assign(moments.begin(), moments.end());
  }
  if (!state.method_state.empty()) {
    const auto method = state.method_state.bytes();
    out->method_state.assign(method.begin(), method.end());
  }
  return learn::save(*out, path);
}

result<std::shared_ptr<const actors::workload>>
averaged_workload(const scenario& from, std::shared_ptr<const actors::workload> work) {
  if (const auto& wrap = from.training.method.definition().wrap) {
    auto wrapped = wrap(from, std::move(work));
    if (!wrapped) return wrapped;
    work = std::move(*wrapped);
  }
  if (from.averaging.power_sgd_rank == 0) return work;
  auto how = low_rank_of(from);
  if (!how) return failure{how.error()};
  return std::shared_ptr<const actors::workload>{
      std::make_shared<const actors::low_rank_workload>(std::move(work), std::move(*how))};
}

actors::round_codecs round_codecs_of(const averaging_options& from,
                                     std::span<const std::uint64_t> tensors) {
  using kernels::codec;
  const auto made = [&](codec which) {
    return which == codec::none
               ? nullptr
               : std::make_shared<const kernels::vector_codec>(which, tensors, from.top_k_fraction);
  };
  const auto back = from.means_compression.value_or(
      from.compression == codec::top_k ? codec::none : from.compression);
  return {made(from.compression), made(back)};
}

actors::averaging_codecs codecs_of(const averaging_options& from, const actors::workload& work) {
  const auto round = [&](const auto& tensors) { return round_codecs_of(from, tensors); };
  if (const auto* how = work.low_rank())
    return {round(how->first_tensors()), round(how->second_tensors())};
  return {round(actors::sizes_of(work.layout())), {}};
}

result<std::optional<training_start>> load_training_start(const scenario& from,
                                                          const actors::workload& work) {
  if (from.training.start_from.empty()) return std::optional<training_start>{};
  auto saved = load_start(from, from.training.start_from);
  if (!saved) return failure{saved.error()};
  training_start out;
  out.data_from = saved->data_from;
  auto& state = out.state;
  state.epoch = saved->epoch;
  state.step = saved->step;
  state.samples = saved->samples;
  const auto& id = saved->state_id;
  std::from_chars(id.data(), id.data() + 16, state.id.high, 16);
  std::from_chars(id.data() + 16, id.data() + 32, state.id.low, 16);
  state.parameters = payload{std::move(saved->parameters)};
  const auto* how = work.low_rank();
  const bool goes_on = how != nullptr && saved->power_sgd_rank == how->rank() &&
                       saved->power_sgd_values == how->state_size();
  if (!goes_on)
    saved->optimizer_state.resize(saved->optimizer_state.size() - 4 * saved->power_sgd_values);
  state.optimizer = payload{std::move(saved->optimizer_state)};
  if (how != nullptr && !goes_on)
    state = dynamic_cast<const actors::low_rank_workload&>(work).with_first_q(std::move(state));
  // A checkpoint of another method begins this one's state anew.
  if (!saved->method_state.empty() &&
      saved->method_state.size() == work.initial().method_state.size())
    state.method_state = payload{std::move(saved->method_state)};
  return std::optional<training_start>{std::move(out)};
}

void prepare_compute_thread() {
#if SHOAL_WITH_LEARN
  learn::use_one_thread();
#endif
}

} // namespace shoal::scenarios
