// kernels/learn/transformer: the gradient against finite differences, sums and means, and the bits,
// which depend on the arguments only.
#include "kernels/base/digest.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/learn/transformer.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

using namespace shoal;
using namespace shoal::learn;

namespace {

const kernels::transformer_config small{.layers = 2, .heads = 2, .dim = 16, .context = 12};

/// A sample of the byte model: a token is a byte.
std::vector<std::byte> random_tokens(std::size_t count, std::uint64_t seed) {
  auto random = stream(seed, "test_tokens");
  std::vector<std::byte> tokens(count);
  for (auto& t : tokens) t = static_cast<std::byte>(random.below(256));
  return tokens;
}

std::vector<token_id> ids_of(std::span<const std::byte> bytes) {
  std::vector<token_id> out(bytes.size());
  decode_tokens(bytes, 256, out);
  return out;
}

/// Parameters away from the initial ones, where gains are 1 and logits are nearly flat.
std::vector<float> rough_parameters(const transformer& model) {
  auto p = model.initial_parameters(3);
  auto random = stream(3, "rough");
  for (auto& v : p) v += static_cast<float>(0.2 * random.normal());
  return p;
}

} // namespace

TEST_CASE("the layout covers the parameters without gaps") {
  const transformer model(small);
  std::size_t next = 0;
  for (const auto& slot : model.layout()) {
    CHECK(slot.offset == next);
    next += slot.size();
  }
  CHECK(next == model.parameter_count());
  CHECK(model.parameter_count() == 256 * 16 + 2 * (12 * 16 * 16 + 2 * 16) + 16);
}

TEST_CASE("impossible sizes are refused with the reason") {
  CHECK(validate(small).ok());
  CHECK(validate(kernels::transformer_config{.heads = 3, .dim = 16})
            .error()
            .find("not a multiple of 2 * heads") != std::string::npos);
  CHECK(validate(kernels::transformer_config{.layers = 0}).error().find("layers is 0") !=
        std::string::npos);
  CHECK(validate(kernels::transformer_config{.vocabulary = 32000}).ok());
  CHECK(validate(kernels::transformer_config{.vocabulary = 0}).error() ==
        "model: vocabulary is 0; it must be from 1 to 2147483648");
  CHECK(!validate(kernels::transformer_config{.vocabulary = (std::int64_t{1} << 31) + 1}).ok());
}

TEST_CASE("initial parameters depend on the seed alone and give nearly uniform predictions") {
  const transformer model(small);
  const auto a = model.initial_parameters(7);
  CHECK(a == model.initial_parameters(7));
  CHECK(a != model.initial_parameters(8));
  CHECK(model.mean_loss(a, random_tokens(8 * 13, 1), 8) ==
        doctest::Approx(std::log(256.0)).epsilon(0.02));
}

TEST_CASE("the gradient agrees with finite differences in every tensor") {
  const transformer model(small);
  auto p = rough_parameters(model);
  const auto tokens = random_tokens(3 * 13, 2);
  std::vector<float> gradient(p.size(), 0.0F);
  model.accumulate_gradient(p, tokens, 3, gradient);
  // The difference is along a random direction within each tensor, so that one difference checks
  // all of its elements.
  for (const auto& slot : model.layout()) {
    auto random = stream(5, "direction", slot.offset);
    std::vector<float> direction(slot.size());
    double expected = 0, norm = 0;
    for (std::size_t i = 0; i < slot.size(); ++i) {
      // Half gradient, half noise: the derivative is then well above the rounding of the loss.
      direction[i] = gradient[slot.offset + i] + 0.1F * static_cast<float>(random.normal());
      norm += static_cast<double>(direction[i]) * direction[i];
    }
    norm = std::sqrt(norm);
    const double h = 2e-2;
    auto plus = p, minus = p;
    for (std::size_t i = 0; i < slot.size(); ++i) {
      plus[slot.offset + i] += static_cast<float>(h * direction[i] / norm);
      minus[slot.offset + i] -= static_cast<float>(h * direction[i] / norm);
      expected += gradient[slot.offset + i] * direction[i] / norm;
    }
    const double measured =
        (model.mean_loss(plus, tokens, 3) - model.mean_loss(minus, tokens, 3)) * 3 / (2 * h);
    INFO(slot.name);
    CHECK(measured == doctest::Approx(expected).epsilon(0.02));
  }
}

TEST_CASE("gradients add up over samples and onto earlier gradients") {
  const transformer model(small);
  const auto p = rough_parameters(model);
  constexpr std::size_t samples = transformer::chunk + 5;
  const auto tokens = random_tokens(samples * 13, 4);
  std::vector<float> all(p.size(), 0.0F), single(p.size(), 1.0F);
  const double loss = model.accumulate_gradient(p, tokens, samples, all);
  double sum = 0;
  for (std::size_t i = 0; i < samples; ++i)
    sum += model.accumulate_gradient(p, std::span(tokens).subspan(i * 13, 13), 1, single);
  CHECK(loss == doctest::Approx(sum).epsilon(1e-6));
  CHECK(loss / samples == doctest::Approx(model.mean_loss(p, tokens, samples)).epsilon(1e-6));
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    difference += std::pow(single[i] - 1.0F - all[i], 2);
    norm += std::pow(all[i], 2);
  }
  CHECK(std::sqrt(difference / norm) < 1e-5);
  CHECK(model.accumulate_gradient(p, {}, 0, all) == 0);
  CHECK(model.mean_loss(p, {}, 0) == 0);
}

TEST_CASE("a prediction does not depend on what comes after it") {
  const transformer model(small);
  const auto p = rough_parameters(model);
  const auto tokens = ids_of(random_tokens(12, 6));
  const auto four = model.next_logits(p, std::span(tokens).first(4));
  const auto five = model.next_logits(p, std::span(tokens).first(5));
  CHECK(four.size() == 256);
  CHECK(four != five);
  // Changed last targets move a sample's loss by those targets alone, which the logits confirm.
  const auto bytes = random_tokens(13, 6);
  const auto sample = ids_of(bytes);
  double expected = 0;
  for (std::size_t t = 0; t < 12; ++t) {
    const auto logits = model.next_logits(p, std::span(sample).first(t + 1));
    double sum = 0;
    for (const float l : logits) sum += std::exp(static_cast<double>(l));
    expected += (std::log(sum) - logits[static_cast<std::size_t>(sample[t + 1])]) / 12;
  }
  CHECK(model.mean_loss(p, bytes, 1) == doctest::Approx(expected).epsilon(1e-5));
}

TEST_CASE("only the last bytes that fit the context count") {
  const transformer model(small);
  const auto p = rough_parameters(model);
  const auto prompt = ids_of(random_tokens(40, 9));
  CHECK(model.next_logits(p, prompt) == model.next_logits(p, std::span(prompt).last(12)));
}

TEST_CASE("bits do not depend on the thread, on other threads or on alignment") {
  const transformer model({.layers = 2, .heads = 4, .dim = 64, .context = 32});
  const auto p = model.initial_parameters(1);
  constexpr std::size_t samples = 24;
  const auto tokens = random_tokens(samples * model.sample_bytes(), 11);
  std::vector<float> reference(p.size(), 0.0F);
  const double loss = model.accumulate_gradient(p, tokens, samples, reference);

  constexpr std::size_t threads = 4;
  std::vector<std::vector<float>> gradients(threads, std::vector<float>(p.size(), 0.0F));
  std::vector<double> losses(threads);
  {
    std::vector<std::jthread> pool;
    for (std::size_t t = 0; t < threads; ++t)
      pool.emplace_back(
          [&, t] { losses[t] = model.accumulate_gradient(p, tokens, samples, gradients[t]); });
  }
  for (std::size_t t = 0; t < threads; ++t) {
    CHECK(losses[t] == loss);
    CHECK(gradients[t] == reference);
  }

  for (std::size_t shift : {1, 2, 3, 5}) {
    std::vector<float> moved(p.size() + shift), into(p.size() + shift, 0.0F);
    std::copy(p.begin(), p.end(), moved.begin() + static_cast<std::ptrdiff_t>(shift));
    std::vector<std::byte> bytes(tokens.size() + shift);
    std::copy(tokens.begin(), tokens.end(), bytes.begin() + static_cast<std::ptrdiff_t>(shift));
    CHECK(model.accumulate_gradient(std::span(moved).subspan(shift),
                                    std::span(bytes).subspan(shift), samples,
                                    std::span(into).subspan(shift)) == loss);
    CHECK(std::equal(reference.begin(), reference.end(),
                     into.begin() + static_cast<std::ptrdiff_t>(shift)));
  }
}

TEST_CASE("the digest of a gradient, printed for the test below" * doctest::skip()) {
  const transformer model({.layers = 2, .heads = 4, .dim = 96, .context = 64});
  const auto p = model.initial_parameters(1);
  std::vector<float> gradient(p.size(), 0.0F);
  const auto loss = model.accumulate_gradient(p, random_tokens(16 * 65, 12), 16, gradient);
  std::printf("digest %s %a\n",
              hash_of(std::as_bytes(std::span(std::as_const(gradient)))).hex().c_str(), loss);
}

TEST_CASE("bits do not depend on OMP_NUM_THREADS") {
  const auto self = std::filesystem::read_symlink("/proc/self/exe").string();
  auto digest_with = [&](int threads) {
    const auto n = std::to_string(threads);
    const auto command = "OMP_NUM_THREADS=" + n + " OPENBLAS_NUM_THREADS=" + n + " '" + self +
                         "' --no-skip --test-case='the digest of a gradient*' | grep ^digest";
    std::string line;
    auto* child = ::popen(command.c_str(), "r");
    REQUIRE(child != nullptr);
    std::array<char, 256> part{};
    while (std::fgets(part.data(), part.size(), child) != nullptr) line += part.data();
    CHECK(::pclose(child) == 0);
    return line;
  };
  const auto one = digest_with(1);
  CHECK(one.size() > 71);
  CHECK(digest_with(2) == one);
  CHECK(digest_with(5) == one);
}
