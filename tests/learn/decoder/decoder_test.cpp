// kernels/learn/decoder on a pretrained LLaMA: the published text and logits, for every cut of the
// layers, by steps and in one pass.
#include "tests/learn/decoder/stories.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/support/skip.hpp"

#include <algorithm>
#include <cmath>

using namespace shoal;
using namespace shoal::learn;
using namespace shoal::test;

namespace {

/// A chain of blocks with caches for one sequence.
struct chain {
  chain(const stories& of, const std::vector<layer_range>& cut) : ends(of.ends()) {
    for (const auto& range : cut) {
      blocks.push_back(of.block(range.first, range.last));
      caches.push_back(blocks.back()->make_cache(1, blocks.back()->context()).value());
    }
  }
  /// The logits after each of the tokens.
  std::vector<float> step(const std::vector<token_id>& tokens) {
    auto x = ends->embed(tokens, caches.front().length()).value();
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const cached_step one[] = {{&caches[i], tokens.size(), x}};
      const auto done = blocks[i]->extend(one);
      REQUIRE_MESSAGE(done.ok(), done.error());
    }
    return ends->logits(x).value();
  }
  std::unique_ptr<const served_ends> ends;
  std::vector<std::unique_ptr<const served_block>> blocks;
  std::vector<kv_cache> caches;
};

token_id likeliest(std::span<const float> logits) {
  return std::max_element(logits.begin(), logits.end()) - logits.begin();
}

} // namespace

TEST_CASE("every cut of the layers writes the published 200 tokens") {
  SHOAL_NEEDS_DATA(file, "stories260K/stories260K.bin");
  SHOAL_NEEDS_DATA(fixture, "oracle_vectors/stories260K_greedy.json");
  const stories all(file);
  const auto ids = published(fixture)["greedy_ids"].get<std::vector<token_id>>();
  REQUIRE(ids.size() == 1 + 200); // after the token that begins a text
  const auto cuts = all_cuts(all.model->layers());
  CHECK(cuts.size() == 16);
  for (const auto& cut : cuts) {
    chain servers(all, cut);
    std::vector<token_id> written{ids.front()};
    while (written.size() < ids.size())
      written.push_back(likeliest(servers.step({written.back()})));
    CHECK(written == ids);
  }
}

TEST_CASE("logits agree with the published ones to 1e-4") {
  SHOAL_NEEDS_DATA(file, "stories260K/stories260K.bin");
  SHOAL_NEEDS_DATA(fixture, "oracle_vectors/stories260K_greedy.json");
  const stories all(file);
  const auto known = published(fixture);
  chain servers(all, {{0, all.model->layers()}});
  double nll = 0, worst = 0;
  const auto ids = known["greedy_ids"].get<std::vector<token_id>>();
  for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
    const auto logits = servers.step({ids[i]});
    double sum = 0;
    const auto most = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
    for (const float each : logits) sum += std::exp(static_cast<double>(each) - most);
    const double log_sum = most + std::log(sum);
    nll += log_sum - static_cast<double>(logits[static_cast<std::size_t>(ids[i + 1])]);
    if (i >= known["per_position"].size()) continue;
    const auto& at = known["per_position"][i];
    CHECK(at["in"].get<token_id>() == ids[i]);
    CHECK(at["argmax"].get<token_id>() == likeliest(logits));
    worst = std::max(worst, std::abs(log_sum - at["logsumexp"].get<double>()));
    for (std::size_t j = 0; j < 8; ++j)
      worst = std::max(
          worst, std::abs(static_cast<double>(logits[j]) - at["logits_first8"][j].get<double>()));
  }
  MESSAGE("largest difference of a logit: ", worst);
  CHECK(worst < 1e-4);
  CHECK(nll == doctest::Approx(known["sum_nll_of_greedy_path"].get<double>()).epsilon(1e-4));
}

TEST_CASE("steps of any length have the bits of one pass") {
  SHOAL_NEEDS_DATA(file, "stories260K/stories260K.bin");
  SHOAL_NEEDS_DATA(fixture, "oracle_vectors/stories260K_greedy.json");
  const stories all(file);
  auto ids = published(fixture)["greedy_ids"].get<std::vector<token_id>>();
  ids.resize(60);
  const auto block = all.block(0, 5);
  const auto entered = all.ends()->embed(ids, 0).value();
  const auto whole = block->forward({1, 60}, entered).value();
  for (const std::size_t each : {std::size_t{1}, std::size_t{7}, std::size_t{60}}) {
    auto cache = block->make_cache(1, 60).value();
    auto x = entered;
    for (std::size_t at = 0; at < 60; at += each) {
      const auto time = std::min(each, 60 - at);
      const cached_step one[] = {{&cache, time, std::span(x).subspan(at * 64, time * 64)}};
      REQUIRE(block->extend(one).ok());
    }
    CHECK(x == whole);
  }
}

TEST_CASE("sessions that are computed together have the bits of sessions alone") {
  SHOAL_NEEDS_DATA(file, "stories260K/stories260K.bin");
  const stories all(file);
  const auto block = all.block(1, 4);
  const auto ends = all.ends();
  const auto a = ends->embed(std::vector<token_id>{1, 403, 407}, 0).value(),
             b = ends->embed(std::vector<token_id>{5, 9}, 0).value();
  std::vector<float> alone_a = a, alone_b = b, both_a = a, both_b = b;
  auto cache_a = block->make_cache(1, 8).value(), cache_b = block->make_cache(1, 4).value();
  const cached_step only_a[] = {{&cache_a, 3, alone_a}}, only_b[] = {{&cache_b, 2, alone_b}};
  REQUIRE(block->extend(only_a).ok());
  REQUIRE(block->extend(only_b).ok());
  auto again_a = block->make_cache(1, 8).value(), again_b = block->make_cache(1, 4).value();
  const cached_step together[] = {{&again_a, 3, both_a}, {&again_b, 2, both_b}};
  REQUIRE(block->extend(together).ok());
  CHECK(both_a == alone_a);
  CHECK(both_b == alone_b);
}

TEST_CASE("a cache that was rolled back or reordered goes on as if nothing had been there") {
  SHOAL_NEEDS_DATA(file, "stories260K/stories260K.bin");
  const stories all(file);
  const auto block = all.block(0, 5);
  const auto ends = all.ends();
  const auto run = [&](kv_cache& cache, const std::vector<token_id>& tokens) {
    auto x = ends->embed(tokens, cache.length()).value();
    const cached_step one[] = {{&cache, tokens.size() / cache.samples(), x}};
    REQUIRE(block->extend(one).ok());
    return x;
  };
  auto straight = block->make_cache(1, 16).value(), winding = block->make_cache(1, 16).value();
  run(straight, {1, 403, 407});
  run(winding, {1, 403, 9, 8, 7});
  REQUIRE(winding.rollback(2).ok());
  run(winding, {407});
  CHECK(run(winding, {261}) == run(straight, {261}));

  auto beams = block->make_cache(2, 16).value(), single = block->make_cache(1, 16).value();
  run(beams, {1, 403, 1, 405}); // two sequences of two tokens
  run(single, {1, 405});
  const std::int64_t second_twice[] = {1, 1};
  REQUIRE(beams.reorder(second_twice).ok());
  const auto after = run(beams, {261, 261}), alone = run(single, {261});
  CHECK(std::equal(alone.begin(), alone.end(), after.begin()));
  CHECK(std::equal(alone.begin(), alone.end(), after.begin() + 64));
}

TEST_CASE("steps that do not fit are refused with the reason and change nothing") {
  SHOAL_NEEDS_DATA(file, "stories260K/stories260K.bin");
  const stories all(file);
  const auto block = all.block(0, 2), other = all.block(0, 3);
  auto cache = block->make_cache(1, 2).value();
  std::vector<float> x(3 * 64), one(64), bad(64);
  bad[7] = std::nanf("");
  const auto refused = [&](const served_block& by, std::size_t time, std::vector<float>& values) {
    const cached_step step[] = {{&cache, time, values}};
    const auto done = by.extend(step);
    return done.ok() ? std::string{} : done.error();
  };
  CHECK(refused(*block, 3, x) == "cache: 3 tokens after 0 do not fit: it was reserved for 2");
  CHECK(refused(*block, 2, one) == "layers: the vector of activations has 64 values; it needs 128");
  CHECK(refused(*block, 1, bad) == "layers: the activations have a value that is not finite");
  CHECK(refused(*other, 1, one) == "cache: it belongs to another block");
  CHECK(cache.length() == 0);
  CHECK(!block->make_cache(1, 513).ok());
  CHECK(!all.ends()->embed(std::vector<token_id>{512}, 0).ok());
  CHECK(!all.model->block({4, 6}, all.parameters).ok());
}
