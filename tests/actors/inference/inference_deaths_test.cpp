// A text that a swarm writes does not depend on the servers that compute it, nor on their deaths.
#include "actors/inference/probes.hpp"
#include "kernels/learn/beam_search.hpp"
#include "tests/actors/inference/inference_lab.hpp"
#include "tests/learn/decoder/kinds.hpp"
#include "tests/learn/decoder/stories.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/support/skip.hpp"

#include <algorithm>
#include <optional>
#include <set>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

using text = std::vector<std::int64_t>;

/// A death: the `count`-th time that any server reaches `point`, it strikes `victim`, or the server
/// that reached the point.
struct death {
  std::string_view point;
  std::size_t count = 0;
  std::optional<std::size_t> victim{};
};

struct outcome {
  text tokens;
  std::size_t lost = 0;
  std::map<std::string_view, std::size_t> reached;
};

outcome write_with(const shared_model& model, const std::vector<layer_span>& spans, text prompt,
                   std::uint32_t count, const std::vector<death>& deaths) {
  inference_lab lab(model);
  for (const auto& span : spans) lab.add_server(span);
  lab.add_client();
  outcome out;
  std::vector<mini_host*> killed;
  lab.world.on_probe = [&](mini_host& host, std::string_view point) {
    if (!host.alive()) return;
    const auto now = ++out.reached[point];
    for (const auto& each : deaths)
      if (each.point == point && each.count == now) {
        auto& victim = each.victim ? *lab.servers[*each.victim] : host;
        if (victim.alive()) victim.kill();
      }
  };
  out.tokens = lab.write(std::move(prompt), count);
  out.lost = lab.seen<span_lost>();
  return out;
}

shared_model random_model_of(test::decoder_kind kind) {
  const learn::decoder model(test::small_decoder(kind, 5, 32));
  std::vector<float> parameters(kernels::end_of(model.layout()));
  auto random = stream(11, "model");
  for (auto& each : parameters) each = static_cast<float>(0.5 * random.normal());
  return {model, parameters};
}

const std::vector<layer_span> twice{{0, 2}, {2, 4}, {4, 5}, {0, 1}, {1, 3}, {3, 5}};

} // namespace

TEST_CASE("every death of one server at every token and protocol point leaves the same text") {
  const auto model = random_model();
  constexpr std::uint32_t count = 12;
  const auto calm = write_with(model, twice, {3, 4}, count, {});
  REQUIRE(calm.tokens.size() == count);
  std::size_t runs = 0, with_loss = 0;
  for (const auto point : inference_probes::all) {
    REQUIRE(calm.reached.at(point) >= count);
    for (std::size_t at = 1; at <= calm.reached.at(point); ++at) {
      CAPTURE(point);
      CAPTURE(at);
      const auto one = write_with(model, twice, {3, 4}, count, {{point, at}});
      CHECK(one.tokens == calm.tokens);
      with_loss += one.lost > 0 ? 1 : 0;
      ++runs;
    }
  }
  MESSAGE(runs, " deaths, ", with_loss, " of a server that was in use");
  CHECK(with_loss > runs / 2);
}

TEST_CASE("every death of one server leaves the same text with each kind of layers") {
  for (const auto kind : test::decoder_kinds) {
    CAPTURE(static_cast<int>(kind));
    const auto model = random_model_of(kind);
    constexpr std::uint32_t count = 10;
    const auto calm = write_with(model, twice, {3, 4}, count, {});
    REQUIRE(calm.tokens.size() == count);
    REQUIRE(std::set<std::int64_t>(calm.tokens.begin(), calm.tokens.end()).size() > 1);
    std::size_t with_loss = 0, runs = 0;
    for (const auto point : inference_probes::all)
      for (std::size_t at = 1; at <= calm.reached.at(point); ++at) {
        CAPTURE(point);
        CAPTURE(at);
        const auto one = write_with(model, twice, {3, 4}, count, {{point, at}});
        CHECK(one.tokens == calm.tokens);
        with_loss += one.lost > 0 ? 1 : 0;
        ++runs;
      }
    MESSAGE(runs, " deaths, ", with_loss, " of a server that was in use");
    CHECK(with_loss > runs / 2);
  }
}

TEST_CASE("pairs of deaths leave the same text while each layer has a server") {
  const auto model = random_model();
  constexpr std::uint32_t count = 4;
  const std::vector<layer_span> thrice{{0, 2}, {2, 5}, {0, 3}, {3, 5}, {0, 1}, {1, 5}};
  const auto calm = write_with(model, thrice, {3, 4}, count, {});
  std::size_t runs = 0;
  for (const auto first : inference_probes::all)
    for (std::size_t at = 1; at <= calm.reached.at(first); ++at)
      for (const auto second : inference_probes::all)
        for (std::size_t then = at; then <= calm.reached.at(second) + 2; ++then) {
          const auto one = write_with(model, thrice, {3, 4}, count, {{first, at}, {second, then}});
          REQUIRE(one.tokens == calm.tokens);
          ++runs;
        }
  MESSAGE(runs, " pairs");
}

TEST_CASE("the published text comes from every cut of the layers over servers") {
  SHOAL_NEEDS_DATA(file, "stories260K/stories260K.bin");
  SHOAL_NEEDS_DATA(fixture, "oracle_vectors/stories260K_greedy.json");
  const test::stories all(file);
  const shared_model model(*all.model, all.parameters);
  const auto ids = test::published(fixture)["greedy_ids"].get<text>();
  for (const auto& cut : test::all_cuts(5)) {
    std::vector<layer_span> spans;
    for (const auto& each : cut)
      spans.push_back(
          {static_cast<std::uint32_t>(each.first), static_cast<std::uint32_t>(each.last)});
    const auto one = write_with(model, spans, {ids[0]}, 200, {});
    CHECK(one.tokens == text(ids.begin() + 1, ids.end()));
  }
}

TEST_CASE("the published text survives deaths at 40 points of the protocol") {
  SHOAL_NEEDS_DATA(file, "stories260K/stories260K.bin");
  SHOAL_NEEDS_DATA(fixture, "oracle_vectors/stories260K_greedy.json");
  const test::stories all(file);
  const shared_model model(*all.model, all.parameters);
  const auto ids = test::published(fixture)["greedy_ids"].get<text>();
  const text expected(ids.begin() + 1, ids.end());
  for (std::size_t at = 1; at <= 400; at += 40)
    for (const auto point : inference_probes::all)
      CHECK(write_with(model, twice, {ids[0]}, 200, {{point, at}}).tokens == expected);
}

TEST_CASE("the published text survives every death at every token and protocol point") {
  SHOAL_NIGHTLY();
  SHOAL_NEEDS_DATA(file, "stories260K/stories260K.bin");
  SHOAL_NEEDS_DATA(fixture, "oracle_vectors/stories260K_greedy.json");
  const test::stories all(file);
  const shared_model model(*all.model, all.parameters);
  const auto ids = test::published(fixture)["greedy_ids"].get<text>();
  const text expected(ids.begin() + 1, ids.end());
  const auto calm = write_with(model, twice, {ids[0]}, 200, {});
  REQUIRE(calm.tokens == expected);
  std::size_t runs = 0, with_loss = 0;
  for (const auto point : inference_probes::all)
    for (std::size_t at = 1; at <= calm.reached.at(point); ++at, ++runs) {
      const auto one = write_with(model, twice, {ids[0]}, 200, {{point, at}});
      REQUIRE(one.tokens == expected);
      with_loss += one.lost > 0 ? 1 : 0;
    }
  MESSAGE(runs, " deaths, ", with_loss, " of a server that was in use");
}

TEST_CASE("a sampled text survives deaths with the same draws") {
  const auto model = random_model();
  const auto sampled = [&](std::optional<std::size_t> at, std::uint64_t seed) {
    inference_lab lab(model);
    for (const auto& span : twice) lab.add_server(span);
    lab.add_client({.temperature = 1, .top_k = 20, .top_p = 0.9}, seed);
    std::size_t reached = 0;
    lab.world.on_probe = [&](mini_host& host, std::string_view point) {
      if (point == inference_probes::batch_begun && ++reached == at) host.kill();
    };
    return lab.write({1}, 20);
  };
  const auto calm = sampled(std::nullopt, 5);
  CHECK(calm.size() == 20);
  CHECK(calm != sampled(std::nullopt, 6));
  for (std::size_t at = 1; at < 60; at += 7) CHECK(sampled(at, 5) == calm);
}

TEST_CASE("beams in a swarm are those of the model alone and survive every death") {
  const auto model = random_model();
  constexpr std::size_t beams = 3;
  constexpr std::uint32_t count = 8;
  // The search on one machine, with a cache for each layer.
  std::vector<learn::kv_cache> caches;
  for (const auto& layer : model.layers) caches.push_back(layer->make_cache(beams, 20).value());
  learn::beam_search search(beams);
  text next{3, 4, 3, 4, 3, 4};
  while (search.best().size() < count) {
    auto x = model.ends->embed(next, 0).value();
    const auto time = next.size() / beams;
    for (std::size_t i = 0; i < caches.size(); ++i) {
      if (time == 1) REQUIRE(caches[i].reorder(search.parents()).ok());
      const learn::cached_step step[] = {{&caches[i], time, x}};
      REQUIRE(model.layers[i]->extend(step).ok());
    }
    std::vector<float> last;
    const auto width = model.ends->width();
    for (std::size_t b = 0; b < beams; ++b)
      last.insert(last.end(), x.begin() + static_cast<long>(((b + 1) * time - 1) * width),
                  x.begin() + static_cast<long>((b + 1) * time * width));
    search.step(model.ends->logits(last).value());
    next = search.last_tokens();
  }
  const auto in_swarm = [&](std::size_t death) {
    inference_lab lab(model);
    for (const auto& span : twice) lab.add_server(span);
    lab.add_client({}, 1, beams);
    std::size_t reached = 0;
    lab.world.on_probe = [&](mini_host& host, std::string_view point) {
      if (point == inference_probes::batch_begun && ++reached == death) host.kill();
    };
    return lab.write({3, 4}, count);
  };
  for (std::size_t death = 0; death < 26; ++death) {
    CAPTURE(death);
    CHECK(in_swarm(death) == search.best());
  }
}

TEST_CASE("a client waits for layers that nobody holds and goes on when somebody comes") {
  const auto model = random_model();
  const auto calm = write_with(model, {{0, 3}, {3, 5}}, {9}, 10, {});
  inference_lab lab(model);
  lab.add_server({0, 3});
  auto& only = lab.add_server({3, 5});
  lab.add_client();
  std::size_t computed = 0;
  lab.world.on_probe = [&](mini_host& host, std::string_view point) {
    if (&host == &only && point == inference_probes::output_sent && ++computed == 4) only.kill();
  };
  lab.ask({9}, 10);
  lab.world.run_for(1min);
  CHECK(lab.answers().empty());
  const auto missing = lab.world.observed<layers_missing>();
  REQUIRE(missing.size() == 1); // said once, and not each second
  CHECK(missing[0].second.layers == layer_span{3, 5});
  lab.add_server({2, 5});
  lab.world.run_for(1min);
  REQUIRE(lab.answers().size() == 1);
  CHECK(lab.answers()[0].tokens == calm.tokens);
}

TEST_CASE("a silent server is given up after its time and another one goes on") {
  const auto model = random_model();
  const auto calm = write_with(model, {{0, 5}}, {9}, 10, {});
  inference_lab lab(model);
  // A host that never answers: its record names an actor that drops all messages.
  auto& host = lab.world.add_host("silent");
  auto log = std::make_shared<collector<inference_step>::log>();
  const auto silent = lab.world.spawn<collector<inference_step>>(host, log);
  server_record record{{0, 5}, 1, 1 << 20, 0, false};
  lab.announce(silent, record, host.id());
  lab.add_server({0, 5});
  lab.add_client();
  CHECK(lab.write({9}, 10) == calm.tokens);
  CHECK(std::get<0>(*log).size() >= 1);
  CHECK(lab.seen<span_lost>() == 1);
}
