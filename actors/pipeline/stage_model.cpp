#include "actors/pipeline/stage_model.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace shoal::actors {

namespace {

using slots = std::vector<kernels::tensor_slot>;

bool has(const slots& in, const std::string& name) {
  return std::any_of(in.begin(), in.end(), [&](const auto& one) { return one.name == name; });
}

/// Appends the tensors that `into` lacks, without gaps.
void append(slots& into, const slots& more) {
  for (auto slot : more) {
    if (has(into, slot.name)) continue;
    slot.offset = kernels::end_of(into);
    into.push_back(std::move(slot));
  }
}

bool same_tensors(const slots& a, const slots& b) {
  return a.size() == b.size() &&
         std::all_of(a.begin(), a.end(), [&](const auto& one) { return has(b, one.name); });
}

bool share_a_tensor(const slots& a, const slots& b) {
  return std::any_of(a.begin(), a.end(), [&](const auto& one) { return has(b, one.name); });
}

} // namespace

result<std::shared_ptr<const stage_model>>
stage_model::make(std::shared_ptr<const learn::layered_model> model,
                  std::vector<learn::layer_range> layers, batch_reader read,
                  kernels::decays decays) {
  std::int64_t next = 0;
  for (std::size_t hop = 0; hop < layers.size(); ++hop) {
    const auto& one = layers[hop];
    const auto least = next + (hop == 0 ? 0 : 1);
    if (one.first != next || one.last < least)
      return failure{"pipeline: a stage has the layers " + std::to_string(one.first) + ":" +
                     std::to_string(one.last) + ", and layer " + std::to_string(next) +
                     " is the next one: let each stage begin where the one before ends"};
    next = one.last;
  }
  if (layers.empty() || next != model->layers())
    return failure{"pipeline: the stages have " + std::to_string(next) + " layers, and the model " +
                   std::to_string(model->layers())};
  auto out = std::shared_ptr<stage_model>(new stage_model);
  out->model_ = std::move(model);
  out->layers_ = std::move(layers);
  out->read_ = std::move(read);
  out->decays_ = decays;
  out->embedding_ = out->model_->embedding_tensors();
  out->head_ = out->model_->head_tensors();
  for (const auto& one : out->layers_) {
    slots block;
    if (one.last > one.first) {
      auto found = out->model_->block_tensors(one);
      if (!found) return failure{found.error()};
      block = std::move(*found);
    }
    const auto known = std::find_if(out->blocks_.begin(), out->blocks_.end(),
                                    [&](const auto& each) { return same_tensors(each, block); });
    out->stage_of_.push_back(static_cast<std::uint32_t>(known - out->blocks_.begin()));
    if (known != out->blocks_.end()) continue;
    for (const auto& other : out->tensors_)
      if (share_a_tensor(block, other))
        return failure{"pipeline: the layers " + std::to_string(one.first) + ":" +
                       std::to_string(one.last) +
                       " share some tensors with another stage: let stages share all or none"};
    slots all;
    if (out->blocks_.empty()) append(all, out->embedding_);
    append(all, block);
    if (out->blocks_.empty()) append(all, out->head_);
    out->blocks_.push_back(std::move(block));
    out->tensors_.push_back(std::move(all));
  }
  return std::shared_ptr<const stage_model>(std::move(out));
}

std::uint32_t stage_model::hops_of(std::uint32_t stage) const noexcept {
  const auto hops = std::count(stage_of_.begin(), stage_of_.end(), stage);
  return static_cast<std::uint32_t>(hops) + (stage == 0 ? 1 : 0);
}

std::shared_ptr<const stage_model> stage_model::sized(std::uint32_t stages, std::size_t values,
                                                      std::uint64_t parameters) {
  SHOAL_CHECK(stages > 0 && values > 0 && parameters > 0, "a model of sizes alone has sizes");
  auto out = std::shared_ptr<stage_model>(new stage_model);
  out->sized_values_ = values;
  for (std::uint32_t s = 0; s < stages; ++s) {
    out->layers_.push_back({s, s + 1});
    out->stage_of_.push_back(s);
    out->tensors_.push_back({{"stage", 0, {static_cast<std::int64_t>(parameters)}}});
  }
  return out;
}

result<piece_batch> stage_model::batch_of(std::uint32_t hop, std::span<const std::byte> samples,
                                          std::uint64_t count, std::span<const float> in) const {
  if (hop == 0 || hop == last_hop()) return read_(samples, count);
  const auto row = count * width();
  if (row == 0 || in.empty() || in.size() % row != 0)
    return failure{"pipeline: " + std::to_string(in.size()) + " activations are no rows of " +
                   std::to_string(width()) + " for " + std::to_string(count) + " samples"};
  piece_batch out;
  out.shape = {static_cast<std::int64_t>(count), static_cast<std::int64_t>(in.size() / row)};
  return out;
}

result<std::vector<float>> stage_model::forward(std::uint32_t hop,
                                                std::span<const float> parameters,
                                                std::span<const std::byte> samples,
                                                std::uint64_t count,
                                                std::span<const float> in) const {
  SHOAL_CHECK(hop < last_hop(), "the last hop has no output");
  auto batch = batch_of(hop, samples, count, in);
  if (!batch) return failure{batch.error()};
  std::vector<float> embedded;
  if (hop == 0) {
    const auto embedding = part(0, parameters, embedding_);
    if (!embedding) return failure{embedding.error()};
    auto made = model_->embed(*embedding, batch->shape, batch->inputs);
    if (!made) return failure{made.error()};
    embedded = std::move(*made);
    in = embedded;
  }
  const auto& layers = layers_[hop];
  if (layers.first == layers.last) return embedded;
  const auto stage = stage_of(hop);
  const auto block = part(stage, parameters, blocks_[stage]);
  if (!block) return failure{block.error()};
  return model_->forward(layers, *block, batch->shape, in);
}

result<stage_model::slope> stage_model::backward(std::uint32_t hop,
                                                 std::span<const float> parameters,
                                                 std::span<const std::byte> samples,
                                                 std::uint64_t count, std::span<const float> in,
                                                 std::span<const float> gradient_out,
                                                 std::span<float> gradient_sum) const {
  SHOAL_CHECK(hop < hops(), "a hop of the pipeline");
  const auto stage = stage_of(hop);
  auto batch = batch_of(hop, samples, count, in);
  if (!batch) return failure{batch.error()};
  slope out;
  const auto add = [&](const slots& piece, std::span<const float> gradient) {
    const auto done = learn::scatter_add(piece, gradient, tensors_[stage], gradient_sum);
    SHOAL_CHECK(done.ok(), "a stage has the tensors of its pieces");
  };
  if (hop == last_hop()) {
    const auto head = part(0, parameters, head_);
    if (!head) return failure{head.error()};
    std::vector<float> gradient(head->size());
    auto made = model_->loss_backward(*head, batch->shape, in, batch->targets, gradient);
    if (!made) return failure{made.error()};
    add(head_, gradient);
    out.gradient_in = std::move(made->gradient_in);
    out.loss = made->loss;
    return out;
  }
  std::vector<float> embedding, embedded;
  if (hop == 0) {
    auto gathered = part(0, parameters, embedding_);
    if (!gathered) return failure{gathered.error()};
    embedding = std::move(*gathered);
  }
  if (const auto& layers = layers_[hop]; layers.first < layers.last) {
    if (hop == 0) {
      auto made = model_->embed(embedding, batch->shape, batch->inputs);
      if (!made) return failure{made.error()};
      embedded = std::move(*made);
      in = embedded;
    }
    const auto block = part(stage, parameters, blocks_[stage]);
    if (!block) return failure{block.error()};
    std::vector<float> gradient(block->size());
    auto made = model_->backward(layers, *block, batch->shape, in, gradient_out, gradient);
    if (!made) return failure{made.error()};
    add(blocks_[stage], gradient);
    out.gradient_in = std::move(*made);
    gradient_out = out.gradient_in;
  }
  if (hop > 0) return out;
  std::vector<float> of_embedding(embedding.size());
  if (auto done = model_->embed_backward(embedding, batch->shape, batch->inputs, gradient_out,
                                         of_embedding);
      !done)
    return failure{done.error()};
  add(embedding_, of_embedding);
  out.gradient_in.clear();
  return out;
}

} // namespace shoal::actors
