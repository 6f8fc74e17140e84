#include "kernels/base/rng.hpp"
#include "kernels/learn/weight_matrix.hpp"
#include "tests/learn/decoder/stories.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/support/skip.hpp"

#include <algorithm>
#include <cmath>

using namespace shoal;
using namespace shoal::learn;

namespace {

constexpr weight_format all_formats[] = {weight_format::float32, weight_format::bfloat16,
                                         weight_format::int8};

std::vector<float> normal(std::size_t n, std::uint64_t seed) {
  std::vector<float> out(n);
  auto random = stream(seed, "weights");
  for (auto& each : out) each = static_cast<float>(random.normal());
  return out;
}

/// The mean loss of the model on the published text, its blocks in the format.
double mean_loss(const test::stories& of, weight_format format, const std::vector<token_id>& ids,
                 std::size_t& bytes) {
  const layer_range all{0, of.model->layers()};
  const auto parameters =
      gather(of.model->layout(), of.parameters, of.model->block_tensors(all).value()).value();
  const auto block = of.model->block(all, parameters, format).value();
  bytes = block->weight_bytes();
  const auto ends = of.ends();
  const auto time = ids.size() - 1;
  const auto x = ends->embed(std::span(ids).first(time), 0).value();
  const auto out = block->forward({1, static_cast<std::int64_t>(time)}, x).value();
  const auto logits = ends->logits(out).value();
  double sum = 0;
  for (std::size_t i = 0; i < time; ++i) {
    const float* row = logits.data() + i * ends->vocabulary();
    double total = 0;
    for (std::size_t j = 0; j < ends->vocabulary(); ++j)
      total += std::exp(static_cast<double>(row[j]));
    sum += std::log(total) - static_cast<double>(row[static_cast<std::size_t>(ids[i + 1])]);
  }
  return sum / static_cast<double>(time);
}

} // namespace

TEST_CASE("a packed matrix has the products of plain loops for any size") {
  for (const auto& [outputs, inputs] : {std::pair<std::size_t, std::size_t>{1, 1},
                                        {7, 3},
                                        {32, 64},
                                        {33, 5},
                                        {172, 64},
                                        {64, 172}}) {
    const auto weights = normal(outputs * inputs, outputs), in = normal(3 * inputs, inputs);
    for (const auto format : all_formats) {
      const weight_matrix packed(weights, outputs, inputs, format);
      std::vector<float> out(3 * outputs);
      packed.multiply(in.data(), 3, out.data());
      // The sum of |weight in| bounds the effect of the codes of the vector, 1 / 254 of its
      // maximum.
      for (std::size_t r = 0; r < 3; ++r)
        for (std::size_t i = 0; i < outputs; ++i) {
          float sum = 0;
          double bound = 1e-5, most = 0;
          for (std::size_t j = 0; j < inputs; ++j)
            most = std::max(most, std::abs(static_cast<double>(in[r * inputs + j])));
          for (std::size_t j = 0; j < inputs; ++j) {
            sum += packed.at(i, j) * in[r * inputs + j];
            if (format == weight_format::int8)
              bound += std::abs(static_cast<double>(packed.at(i, j))) * most / 254;
          }
          if (format == weight_format::int8)
            CHECK(std::abs(static_cast<double>(out[r * outputs + i] - sum)) <= bound * 1.01);
          else
            CHECK(out[r * outputs + i] == sum);
        }
    }
  }
}

TEST_CASE("weights in fewer bytes are within their bounds") {
  const auto weights = normal(20 * 30, 3);
  const weight_matrix bf16(weights, 20, 30, weight_format::bfloat16),
      int8(weights, 20, 30, weight_format::int8);
  for (std::size_t i = 0; i < 20; ++i) {
    float most = 0;
    for (std::size_t j = 0; j < 30; ++j) most = std::max(most, std::abs(weights[i * 30 + j]));
    for (std::size_t j = 0; j < 30; ++j) {
      const float w = weights[i * 30 + j];
      CHECK(std::abs(bf16.at(i, j) - w) <= std::abs(w) / 256);
      CHECK(std::abs(int8.at(i, j) - w) <= most / 254 * 1.0001F);
    }
  }
  const weight_matrix zeros(std::vector<float>(4), 2, 2, weight_format::int8);
  CHECK(zeros.at(1, 1) == 0);
}

TEST_CASE("a value that is an outlier is multiplied without codes and leaves the others precise") {
  const auto weights = normal(8 * 16, 5);
  const weight_matrix packed(weights, 8, 16, weight_format::int8);
  std::vector<float> in(16, 0.01F), out(8);
  in[3] = 1000;
  packed.multiply(in.data(), 1, out.data());
  for (std::size_t i = 0; i < 8; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < 16; ++j)
      sum += static_cast<double>(packed.at(i, j)) * static_cast<double>(in[j]);
    CHECK(static_cast<double>(out[i]) == doctest::Approx(sum).epsilon(1e-5));
  }
}

TEST_CASE("no format changes a bit when vectors are multiplied together") {
  const auto weights = normal(40 * 24, 7), in = normal(5 * 24, 8);
  for (const auto format : all_formats) {
    const weight_matrix packed(weights, 40, 24, format);
    std::vector<float> together(5 * 40), alone(5 * 40);
    packed.multiply(in.data(), 5, together.data());
    for (std::size_t r = 0; r < 5; ++r)
      packed.multiply(in.data() + r * 24, 1, alone.data() + r * 40);
    CHECK(together == alone);
  }
}

TEST_CASE("the loss of the pretrained model changes little with weights in fewer bytes") {
  SHOAL_NEEDS_DATA(file, "stories260K/stories260K.bin");
  SHOAL_NEEDS_DATA(fixture, "oracle_vectors/stories260K_greedy.json");
  const test::stories all(file);
  const auto ids = test::published(fixture)["greedy_ids"].get<std::vector<token_id>>();
  std::size_t bytes[3];
  double loss[3];
  for (std::size_t i = 0; i < 3; ++i) loss[i] = mean_loss(all, all_formats[i], ids, bytes[i]);
  MESSAGE("loss on its own text: float32 ", loss[0], " (", bytes[0], " bytes), bfloat16 ", loss[1],
          " (", bytes[1], "), int8 ", loss[2], " (", bytes[2], ")");
  CHECK(loss[0] == doctest::Approx(94.683532 / 200).epsilon(1e-5));
  CHECK(std::abs(loss[1] - loss[0]) < 0.01);
  CHECK(std::abs(loss[2] - loss[0]) < 0.03);
  CHECK(static_cast<double>(bytes[1]) < 0.52 * static_cast<double>(bytes[0]));
  CHECK(static_cast<double>(bytes[2]) < 0.29 * static_cast<double>(bytes[0]));
}
