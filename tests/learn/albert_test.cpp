// kernels/learn/albert and albert_blocks. The fixture was computed in double precision from Hugging
// Face's formulas. Gradients do not depend on the division of the samples, on checkpointing, or on
// the cut of the layers.
#include "kernels/base/rng.hpp"
#include "kernels/learn/albert.hpp"
#include "kernels/learn/albert_blocks.hpp"
#include "kernels/learn/torch_loader.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/support/skip.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

using namespace shoal;
using namespace shoal::learn;
using nlohmann::json;

namespace {

const albert_config tiny{.vocabulary = 32,
                         .embedding = 8,
                         .hidden = 16,
                         .layers = 3,
                         .heads = 4,
                         .feed_forward = 20,
                         .positions = 12};

/// The tensors of a safetensors file in the order of `layout`.
std::vector<float> parameters_in(const std::string& file,
                                 const std::vector<kernels::tensor_slot>& layout) {
  std::uint64_t header = 0;
  std::memcpy(&header, file.data(), 8);
  const auto names = json::parse(file.substr(8, header));
  std::vector<float> out(kernels::end_of(layout));
  for (const auto& slot : layout) {
    INFO(slot.name);
    REQUIRE(names.contains(slot.name));
    const auto& entry = names.at(slot.name);
    CHECK(entry.at("shape").get<std::vector<std::int64_t>>() == slot.shape);
    const auto from = entry.at("data_offsets").at(0).get<std::size_t>();
    std::memcpy(out.data() + slot.offset, file.data() + 8 + header + from, 4 * slot.size());
  }
  CHECK(names.size() == layout.size() + 1); // and __metadata__
  return out;
}

std::vector<albert_sample> samples_in(const json& fixture) {
  std::vector<albert_sample> out;
  const auto& ids = fixture.at("input_ids");
  for (std::size_t s = 0; s < ids.size(); ++s) {
    albert_sample one;
    for (std::size_t t = 0; t < ids.at(s).size(); ++t) {
      if (fixture.at("attention_mask").at(s).at(t) == 0) continue;
      one.tokens.push_back(ids.at(s).at(t));
      const token_id label = fixture.at("labels").at(s).at(t);
      one.labels.push_back(label == -100 ? albert_sample::no_label : label);
      one.first += fixture.at("token_type_ids").at(s).at(t) == 0 ? 1 : 0;
    }
    one.order = fixture.at("sentence_order_label").at(s);
    out.push_back(std::move(one));
  }
  return out;
}

std::vector<std::byte> bytes_of(const std::vector<albert_sample>& samples,
                                const albert_format& format) {
  std::vector<std::byte> out(samples.size() * format.bytes());
  for (std::size_t s = 0; s < samples.size(); ++s)
    format.write(samples[s], std::span(out).subspan(s * format.bytes(), format.bytes()));
  return out;
}

/// Samples of different lengths.
std::vector<albert_sample> drawn(const albert_config& config, std::size_t count) {
  auto random = stream(4, "albert_samples");
  const auto below = [&](std::int64_t n) {
    return static_cast<token_id>(random.below(static_cast<std::uint64_t>(n)));
  };
  std::vector<albert_sample> out(count);
  for (auto& one : out) {
    const auto length = static_cast<std::size_t>(4 + below(config.positions - 3));
    for (std::size_t t = 0; t < length; ++t) {
      one.tokens.push_back(below(config.vocabulary));
      one.labels.push_back(t > 0 && random.uniform() < 0.3 ? below(config.vocabulary)
                                                           : albert_sample::no_label);
    }
    one.first = length / 2;
    one.order = below(2);
  }
  return out;
}

std::vector<float> rough_parameters(const albert_config& config) {
  auto out = albert_initial_parameters(config, 7);
  auto random = stream(7, "rough");
  for (auto& value : out) value += static_cast<float>(0.2 * random.normal());
  return out;
}

/// The largest difference, as a fraction of the largest value.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0, scale = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(a[i]) - b[i]));
    scale = std::max(scale, std::abs(static_cast<double>(b[i])));
  }
  return most / scale;
}

void check_near(const std::vector<float>& found, const json& wanted, std::size_t& at) {
  if (wanted.is_array()) {
    for (const auto& inner : wanted) check_near(found, inner, at);
    return;
  }
  const double value = wanted;
  CHECK(std::abs(found[at] - value) <= 1e-5 * std::max(1.0, std::abs(value)));
  ++at;
}

} // namespace

TEST_CASE("ALBERT gives the losses and the hidden states and the gradients of its fixture") {
  SHOAL_NEEDS_DATA(weights, "oracle_vectors/albert_tiny/model.safetensors");
  const auto fixture =
      json::parse(contents_of(reference_file("oracle_vectors/albert_tiny/expected.json")));
  const auto& outputs = fixture.at("outputs");
  const auto layout = albert_layout(tiny);
  const auto parameters = parameters_in(contents_of(weights), layout);
  CHECK(parameters.size() == 2846);
  const auto samples = samples_in(fixture);
  REQUIRE(load_torch().ok());
  for (const bool checkpoint : {false, true}) {
    const auto math = make_albert_math({tiny, checkpoint, layout});
    const auto batch = albert_batch_of(samples);
    std::vector<float> gradient(parameters.size());
    const auto losses =
        math->accumulate_gradient(parameters, batch.input(), batch.targets(), gradient);
    // Both samples have two labels, so the mean over labels is the mean over samples.
    CHECK(losses.labels / 2 == doctest::Approx(outputs.at("mlm_loss").get<double>()).epsilon(1e-6));
    CHECK(losses.classes / 2 ==
          doctest::Approx(outputs.at("sop_loss").get<double>()).epsilon(1e-6));
    CHECK(losses.sum() / 2 == doctest::Approx(outputs.at("loss").get<double>()).epsilon(1e-6));
    const auto& wanted = fixture.at("gradients_flat_index");
    CHECK(wanted.size() == 12);
    for (const auto& [key, value] : wanted.items()) {
      INFO(key);
      const auto open = key.find('[');
      const auto slot = std::find_if(layout.begin(), layout.end(), [&](const auto& of) {
        return of.name == key.substr(0, open);
      });
      REQUIRE(slot != layout.end());
      const double found = gradient[slot->offset + std::stoul(key.substr(open + 1))] / 2.0;
      CHECK(std::abs(found - value.get<double>()) <= 1e-5);
    }
    // The scores of all places, and the hidden states of every token. The fixture has outputs for
    // padding, too; those depend on nothing that is used.
    auto all = batch;
    all.places.resize(all.shape.tokens());
    std::iota(all.places.begin(), all.places.end(), 0);
    const auto scores = math->scores(parameters, all.input(), all.targets());
    std::size_t at = 0;
    check_near(scores.labels, outputs.at("prediction_logits"), at);
    CHECK(at == 2 * 10 * 32);
    at = 0;
    check_near(scores.classes, outputs.at("sop_logits"), at);
  }
  const auto blocks = make_albert_blocks(tiny).value();
  const auto pieces = albert_pieces_of(samples, tiny.vocabulary);
  const auto embedded = blocks
                            ->embed(gather(layout, parameters, blocks->embedding_tensors()).value(),
                                    pieces.shape, pieces.inputs)
                            .value();
  const auto hidden =
      blocks
          ->forward({0, 3},
                    gather(layout, parameters, blocks->block_tensors({0, 3}).value()).value(),
                    pieces.shape, embedded)
          .value();
  std::vector<float> without_flags;
  for (std::size_t i = 0; i < hidden.size(); ++i)
    if (i % 17 != 16) without_flags.push_back(hidden[i]);
  std::size_t at = 0;
  check_near(without_flags, outputs.at("last_hidden_state"), at);
  CHECK(at == 2 * 10 * 16);
}

TEST_CASE("ALBERT has the published numbers of parameters") {
  const albert_config large; // sahajBERT
  const auto layout = albert_layout(large);
  CHECK(kernels::end_of(layout) == 18'105'474);
  const auto sum = [&](std::size_t begin, std::size_t end) {
    std::size_t total = 0;
    for (auto i = begin; i < end; ++i) total += layout[i].size();
    return total;
  };
  CHECK(sum(0, 5) == 4'162'048);
  CHECK(sum(5, 7) == 132'096);
  CHECK(sum(7, 23) == 12'596'224);
  CHECK(sum(23, 25) == 1'049'600);
  CHECK(sum(25, 30) == 163'456);
  CHECK(sum(30, 32) == 2'050);
  std::size_t decayed = 0;
  for (const auto& slot : layout) decayed += albert_decays(slot.name) ? 1 : 0;
  CHECK(decayed == 14); // the matrices and embeddings, and the gain that the rule misses
  CHECK(albert_decays(
      "albert.encoder.albert_layer_groups.0.albert_layers.0.full_layer_layer_norm.weight"));
  CHECK_FALSE(albert_decays("albert.embeddings.LayerNorm.weight"));
}

TEST_CASE("an ALBERT of impossible sizes is refused by name") {
  auto config = tiny;
  config.heads = 3;
  CHECK(validate(config).error() == "model: hidden 16 cannot be divided among 3 heads");
  config = tiny;
  config.layers = 0;
  CHECK(validate(config).error() == "model: layers is 0; it must be from 1 to 1024");
}

TEST_CASE("ALBERT starts from normal weights and a zero row for padding") {
  const auto layout = albert_layout(tiny);
  const auto a = albert_initial_parameters(tiny, 5);
  CHECK(a == albert_initial_parameters(tiny, 5));
  CHECK(a != albert_initial_parameters(tiny, 6));
  for (std::size_t i = 0; i < 8; ++i) CHECK(a[i] == 0);
  double squares = 0;
  for (std::size_t i = 8; i < 256; ++i) squares += double{a[i]} * a[i];
  CHECK(std::sqrt(squares / 248) == doctest::Approx(0.02).epsilon(0.15));
  for (const auto& slot : layout) {
    if (slot.shape.size() > 1) continue;
    for (std::size_t i = 0; i < slot.size(); ++i)
      CHECK(a[slot.offset + i] == (slot.name.ends_with("weight") ? 1.0F : 0.0F));
  }
}

TEST_CASE("a swarm with uneven batches has ALBERT's gradient of one machine") {
  const albert model(tiny);
  const auto parameters = rough_parameters(tiny);
  const auto bytes = bytes_of(drawn(tiny, 41), model.format());
  REQUIRE(model.check_samples(bytes).ok());
  const auto size = model.sample_bytes();
  std::vector<float> whole(model.parameter_count());
  const auto loss = model.accumulate_gradient(parameters, bytes, 41, whole);
  CHECK(loss / 41 == doctest::Approx(model.mean_loss(parameters, bytes, 41)).epsilon(1e-6));
  std::vector<double> sum(model.parameter_count());
  double parts_loss = 0;
  std::size_t from = 0;
  for (const std::size_t count : {1U, 7U, 3U, 19U, 11U}) {
    std::vector<float> part(model.parameter_count());
    parts_loss += model.accumulate_gradient(
        parameters, std::span(bytes).subspan(from * size, count * size), count, part);
    for (std::size_t i = 0; i < part.size(); ++i) sum[i] += part[i];
    from += count;
  }
  CHECK(from == 41);
  CHECK(parts_loss == doctest::Approx(loss).epsilon(1e-6));
  CHECK(difference(std::vector<float>(sum.begin(), sum.end()), whole) <= 1e-6);
}

TEST_CASE("ALBERT's checkpointing changes no bit") {
  const albert keeps(tiny), again(tiny, true);
  const auto parameters = rough_parameters(tiny);
  const auto bytes = bytes_of(drawn(tiny, 9), keeps.format());
  std::vector<float> a(keeps.parameter_count()), b = a;
  CHECK(keeps.accumulate_gradient(parameters, bytes, 9, a) ==
        again.accumulate_gradient(parameters, bytes, 9, b));
  CHECK(a == b);
}

TEST_CASE("ALBERT in pieces has the loss and the gradient of the whole model") {
  const albert model(tiny);
  const auto blocks = make_albert_blocks(tiny).value();
  const auto parameters = rough_parameters(tiny);
  const auto samples = drawn(tiny, 5);
  const auto& layout = model.layout();
  std::vector<float> whole(parameters.size());
  const auto loss =
      model.accumulate_gradient(parameters, bytes_of(samples, model.format()), 5, whole);
  const auto data = albert_pieces_of(samples, tiny.vocabulary);
  for (const auto& cut : std::vector<std::vector<layer_range>>{
           {{0, 3}}, {{0, 1}, {1, 3}}, {{0, 1}, {1, 2}, {2, 3}}}) {
    std::vector<float> gradient(parameters.size());
    const auto embedding = gather(layout, parameters, blocks->embedding_tensors()).value();
    const auto head = gather(layout, parameters, blocks->head_tensors()).value();
    const auto shared = gather(layout, parameters, blocks->block_tensors({0, 1}).value()).value();
    std::vector<std::vector<float>> entered{
        blocks->embed(embedding, data.shape, data.inputs).value()};
    for (const auto& block : cut)
      entered.push_back(blocks->forward(block, shared, data.shape, entered.back()).value());
    std::vector<float> of_head(head.size()), of_embedding(embedding.size());
    auto back =
        blocks->loss_backward(head, data.shape, entered.back(), data.targets, of_head).value();
    CHECK(back.loss == doctest::Approx(loss).epsilon(1e-6));
    CHECK(blocks->loss(head, data.shape, entered.back(), data.targets).value() == back.loss);
    for (std::size_t i = cut.size(); i-- > 0;) {
      std::vector<float> of_block(shared.size());
      back.gradient_in =
          blocks->backward(cut[i], shared, data.shape, entered[i], back.gradient_in, of_block)
              .value();
      CHECK(scatter_add(blocks->block_tensors(cut[i]).value(), of_block, layout, gradient).ok());
    }
    CHECK(blocks->embed_backward(embedding, data.shape, data.inputs, back.gradient_in, of_embedding)
              .ok());
    CHECK(scatter_add(blocks->embedding_tensors(), of_embedding, layout, gradient).ok());
    CHECK(scatter_add(blocks->head_tensors(), of_head, layout, gradient).ok());
    CHECK(difference(gradient, whole) <= 1e-6);
  }
}

TEST_CASE("ALBERT in pieces refuses targets that mix samples with and without an order") {
  const auto blocks = make_albert_blocks(tiny).value();
  const auto layout = albert_layout(tiny);
  const auto parameters = rough_parameters(tiny);
  const auto head = gather(layout, parameters, blocks->head_tensors()).value();
  auto data = albert_pieces_of(drawn(tiny, 2), tiny.vocabulary);
  const std::vector<float> activations(data.shape.tokens() * blocks->width());
  data.targets[0] = tiny.vocabulary;
  CHECK(blocks->loss(head, data.shape, activations, data.targets).error() ==
        "layers: some samples have a target for their order and others have none; give one to all "
        "or to none");
  data.targets[1] = tiny.vocabulary + 1;
  CHECK_FALSE(blocks->loss(head, data.shape, activations, data.targets).ok());
  CHECK(blocks->logits(head, data.shape, activations).error() ==
        "layers: albert predicts masked tokens, and no next token");
}

TEST_CASE("bytes that are no samples of ALBERT are refused with their place") {
  const albert_format format{32, 12};
  auto bytes = bytes_of(drawn(tiny, 3), format);
  CHECK(format.check(bytes).ok());
  const auto again = format.read(std::span(bytes).subspan(format.bytes(), format.bytes()));
  CHECK(again.tokens == drawn(tiny, 3)[1].tokens);
  CHECK(again.labels == drawn(tiny, 3)[1].labels);
  CHECK(again.order == drawn(tiny, 3)[1].order);
  CHECK_FALSE(format.check(std::span(bytes).first(bytes.size() - 1)).ok());
  auto wrong = bytes;
  wrong[format.bytes() + 8] = std::byte{32};
  CHECK(format.check(wrong).error() == "samples: number 1 is wrong: tokens: number 0 is 32; the "
                                       "vocabulary has 32");
  wrong = bytes;
  wrong[2 * format.bytes()] = std::byte{13};
  CHECK(format.check(wrong).error().starts_with("samples: number 2 says that it has 13 tokens"));
  wrong = bytes;
  wrong[4] = std::byte{2};
  CHECK(format.check(wrong).error() == "samples: number 0 has an order that is neither 0 nor 1");
}
