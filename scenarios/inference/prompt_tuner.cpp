#include "scenarios/inference/prompt_tuner.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <utility>

namespace shoal::scenarios {

namespace {

using floats = std::vector<float>;

/// [samples, prompt_length + length, width] from the tokens' embeddings, with zeros before them.
floats input_of(const learn::decoder& model, const floats& embedding, const prompt_tuning& what,
                const tuning_batch& batch) {
  const learn::pass_shape shape{static_cast<std::int64_t>(what.samples),
                                static_cast<std::int64_t>(what.length)};
  const auto text = model.embed(embedding, shape, batch.tokens).value();
  const auto width = model.width();
  floats out(what.samples * (what.prompt_length + what.length) * width);
  for (std::size_t s = 0; s < what.samples; ++s)
    std::copy_n(
        text.begin() + static_cast<std::ptrdiff_t>(s * what.length * width), what.length * width,
        out.begin() + static_cast<std::ptrdiff_t>(
                          (s * (what.prompt_length + what.length) + what.prompt_length) * width));
  return out;
}

/// The rows after the prompt.
floats without_prompt(const floats& all, const prompt_tuning& what, std::size_t width) {
  floats out;
  for (std::size_t s = 0; s < what.samples; ++s) {
    const auto from =
        all.begin() + static_cast<std::ptrdiff_t>(
                          (s * (what.prompt_length + what.length) + what.prompt_length) * width);
    out.insert(out.end(), from, from + static_cast<std::ptrdiff_t>(what.length * width));
  }
  return out;
}

} // namespace

floats first_prompts(const learn::decoder& model, const prompt_tuning& what, std::uint64_t seed) {
  const auto each = what.prompt_length * model.width();
  floats out(static_cast<std::size_t>(model.layers()) * each);
  auto random = stream(seed, "inference.prompts");
  for (std::size_t i = 0; i < (what.deep ? out.size() : each); ++i)
    out[i] = static_cast<float>(0.02 * random.normal());
  return out;
}

tuning_batch batch_of(const prompt_tuning& what, std::uint64_t seed, std::uint32_t step) {
  SHOAL_CHECK(what.text.size() > what.length, "the text has more tokens than a sequence");
  auto random = stream(seed, "inference.tuning_batch", step);
  tuning_batch out;
  for (std::size_t s = 0; s < what.samples; ++s) {
    const auto from = what.text.begin() +
                      static_cast<std::ptrdiff_t>(random.below(what.text.size() - what.length));
    const auto count = static_cast<std::ptrdiff_t>(what.length);
    out.tokens.insert(out.tokens.end(), from, from + count);
    out.targets.insert(out.targets.end(), from + 1, from + 1 + count);
  }
  return out;
}

double loss_alone(const learn::served_model& model, const prompt_tuning& what,
                  const tuning_batch& batch, const floats& prompts) {
  const auto& decoder = *model.model;
  const auto width = decoder.width(), time = what.prompt_length + what.length;
  const learn::pass_shape shape{static_cast<std::int64_t>(what.samples),
                                static_cast<std::int64_t>(time)};
  auto x = input_of(decoder, model.part(decoder.embedding_tensors()), what, batch);
  for (std::int64_t l = 0; l < decoder.layers(); ++l) {
    const auto each = what.prompt_length * width;
    for (std::size_t s = 0; s < what.samples; ++s)
      for (std::size_t i = 0; i < each; ++i)
        x[s * time * width + i] += prompts[static_cast<std::size_t>(l) * each + i];
    const learn::layer_range one{l, l + 1};
    x = decoder.forward(one, model.part(decoder.block_tensors(one).value()), shape, x).value();
  }
  const learn::pass_shape text{shape.samples, static_cast<std::int64_t>(what.length)};
  return decoder
             .loss(model.part(decoder.head_tensors()), text, without_prompt(x, what, width),
                   batch.targets)
             .value() /
         static_cast<double>(what.samples);
}

prompt_tuner::prompt_tuner(caf::actor_config& config, actors::host& on, prompt_tuner_config options)
    : protocol_actor(config, on), options_(std::move(options)) {
  const auto& model = *options_.model;
  embedding_ = model.part(model.model->embedding_tensors());
  head_ = model.part(model.model->head_tensors());
  prompts_ = first_prompts(*model.model, options_.what, options_.seed);
  state_.resize(kernels::state_size(options_.what.optimizer, prompts_.size()));
}

void prompt_tuner::on_exit() {
  options_.client = nullptr;
  options_.on_step = nullptr;
  options_.on_end = nullptr;
  protocol_actor::on_exit();
}

caf::behavior prompt_tuner::make_behavior() {
  begin();
  return {[this](const actors::layers_done& m) {
    SHOAL_CHECK(m.why.empty(), "the batch fits the model");
    if (std::exchange(backward_, !backward_)) return learn(m.prompts.floats());
    const auto all = m.activations.floats();
    go_back({all.begin(), all.end()});
  }};
}

void prompt_tuner::begin() {
  const auto& what = options_.what;
  const auto& model = *options_.model->model;
  batch_ = batch_of(what, options_.seed, step_);
  actors::layers_forward m;
  m.reply_to = address();
  m.token = step_ + 1;
  m.last = static_cast<std::uint32_t>(model.layers());
  m.samples = static_cast<std::uint32_t>(what.samples);
  m.time = static_cast<std::uint32_t>(what.prompt_length + what.length);
  m.activations = payload{input_of(model, embedding_, what, batch_)};
  m.prompt_length = static_cast<std::uint32_t>(what.prompt_length);
  m.prompts = payload{prompts_};
  send(options_.client, std::move(m));
}

void prompt_tuner::go_back(const floats& output) {
  const auto& what = options_.what;
  const auto& model = *options_.model->model;
  const auto width = model.width(), time = what.prompt_length + what.length;
  const learn::pass_shape text{static_cast<std::int64_t>(what.samples),
                               static_cast<std::int64_t>(what.length)};
  floats unused(head_.size()); // the gradient of the head, which stays as it is
  const auto head =
      model.loss_backward(head_, text, without_prompt(output, what, width), batch_.targets, unused)
          .value();
  const auto samples = static_cast<double>(what.samples);
  options_.on_step(step_, head.loss / samples, prompts_);
  floats gradient(output.size());
  for (std::size_t s = 0; s < what.samples; ++s)
    for (std::size_t i = 0; i < what.length * width; ++i)
      gradient[(s * time + what.prompt_length) * width + i] =
          static_cast<float>(head.gradient_in[s * what.length * width + i] / samples);
  send(options_.client, actors::layers_backward{step_ + 1, payload{std::move(gradient)}});
}

void prompt_tuner::learn(std::span<const float> gradient) {
  floats mine(gradient.begin(), gradient.end());
  const auto each = options_.what.prompt_length * options_.model->model->width();
  if (!options_.what.deep)
    std::fill(mine.begin() + static_cast<std::ptrdiff_t>(each), mine.end(), 0.F);
  kernels::step(options_.what.optimizer, std::int64_t{step_} + 1, mine, prompts_,
                std::span<float>(state_));
  if (++step_ <= options_.what.steps) return begin();
  options_.on_end();
}

} // namespace shoal::scenarios
