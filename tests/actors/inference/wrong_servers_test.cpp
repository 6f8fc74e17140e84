// A client that has its servers' outputs computed again writes the model's own text, although
// servers compute wrongly.
#include "actors/conduct/conducts.hpp"
#include "tests/actors/inference/inference_lab.hpp"

#include <algorithm>
#include <map>
#include <set>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

struct outcome {
  std::vector<std::int64_t> text, shown;
  std::size_t checks = 0, disputes = 0, retracted = 0;
  bool disputed = false; ///< at the end
  std::set<std::size_t> blamed;
};

/// Each layer has four servers. Those of `liars` compute wrongly, at most once in `every`.
outcome write_among(const shared_model& model, const std::set<std::size_t>& liars, double check,
                    learn::sampling_options sampling = {.temperature = 0}, duration every = 0s,
                    std::optional<std::size_t> dies = {}, std::uint64_t seed = 1) {
  inference_lab lab(model, seed);
  std::map<peer_id, std::size_t> numbers;
  for (std::size_t i = 0; i < 8; ++i) {
    std::function<std::shared_ptr<conduct>(host&)> conduct_of;
    if (liars.contains(i))
      conduct_of = [every](host& on) {
        conduct_options how;
        how.kind = "wrong_layers";
        how.every = every;
        return make_conduct(how, on);
      };
    auto& server =
        lab.add_server(i % 2 == 0 ? layer_span{0, 3} : layer_span{3, 5}, {}, nullptr, conduct_of);
    numbers[server.id()] = i;
  }
  lab.add_client(sampling, 1, 1, check);
  lab.ask({1, 2, 3}, 30);
  if (dies) {
    lab.world.run_for(700ms);
    lab.servers[*dies]->kill();
  }
  for (const auto until = lab.world.now() + 1h; lab.answers().empty() && lab.world.now() < until;)
    lab.world.run_for(500ms);
  outcome out;
  REQUIRE(lab.answers().size() == 1);
  out.text = lab.answers().front().tokens;
  out.disputed = lab.answers().front().disputed;
  out.shown = lab.shown;
  for (const auto& [who, each] : lab.world.observed<outputs_checked>()) {
    ++out.checks;
    out.disputes += each.disputed ? 1 : 0;
  }
  for (const auto& [who, each] : lab.world.observed<wrong_server>()) {
    out.blamed.insert(numbers.at(each.server));
    out.retracted += each.retracted;
  }
  return out;
}

} // namespace

TEST_CASE("wrong servers: without checks a wrong server changes the text") {
  const auto model = random_model();
  const auto honest = write_among(model, {}, 0).text;
  CHECK(honest.size() == 30);
  CHECK(write_among(model, {0, 2, 4, 6}, 0).text != honest);
}

TEST_CASE("wrong servers: checks of honest servers change nothing and blame nobody") {
  const auto model = random_model();
  const auto honest = write_among(model, {}, 0).text;
  for (const double share : {1e-9, 0.2, 1.0}) {
    const auto out = write_among(model, {}, share);
    CHECK(out.text == honest);
    CHECK(out.shown == honest);
    CHECK(out.blamed.empty());
    CHECK(out.disputes == 0);
    CHECK_FALSE(out.disputed);
    // The last token has one check, however small the share is.
    CHECK(out.checks >= 1);
    if (share == 1.0) CHECK(out.checks == 30);
  }
}

TEST_CASE("wrong servers: with checks the text is the model's own, and only liars are blamed") {
  const auto model = random_model();
  std::size_t found = 0, retracted = 0;
  for (const learn::sampling_options sampling :
       {learn::sampling_options{.temperature = 0}, learn::sampling_options{.temperature = 0.8}}) {
    const auto honest = write_among(model, {}, 0, sampling).text;
    for (const duration every : {0s, 1s})
      for (const double share : {1e-9, 0.1, 1.0})
        for (const auto& liars : std::vector<std::set<std::size_t>>{
                 {0}, {1}, {2}, {7}, {0, 1}, {0, 2}, {1, 3}, {4, 6}, {0, 3}}) {
          const auto out = write_among(model, liars, share, sampling, every);
          CAPTURE(share);
          CAPTURE(to_seconds(every));
          CHECK(out.text == honest);
          CHECK(out.shown == honest);
          CHECK(std::includes(liars.begin(), liars.end(), out.blamed.begin(), out.blamed.end()));
          found += out.blamed.size();
          retracted += out.retracted;
        }
  }
  MESSAGE(found << " servers found, " << retracted << " tokens taken back");
  CHECK(found > 60);
  CHECK(retracted > 100);
}

TEST_CASE("wrong servers: a liar that dies leaves no wrong word") {
  const auto model = random_model();
  const auto honest = write_among(model, {}, 0).text;
  for (std::size_t dies = 0; dies < 8; ++dies)
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      const auto out = write_among(model, {dies}, 0.1, {.temperature = 0}, 0s, dies, seed);
      CHECK(out.text == honest);
      CHECK(out.shown == honest);
      CHECK(out.blamed.size() <= 1);
    }
}

TEST_CASE("wrong servers: where all servers of a layer differ, nobody is blamed") {
  const auto model = random_model();
  // Servers 0, 2, 4 and 6 hold the first layers: three liars that differ, and one honest server.
  const auto out = write_among(model, {0, 2, 4}, 1.0);
  CHECK(out.disputes > 0);
  CHECK(out.disputed);
  CHECK(out.blamed.empty());
  CHECK(out.text.size() == 30);
}

TEST_CASE("wrong servers: a check waits for a third server that comes in time") {
  const auto model = random_model();
  const auto honest = write_among(model, {}, 0).text;
  for (const bool in_time : {true, false}) {
    inference_lab lab(model, 1);
    const auto lies = [](host& on) {
      conduct_options how;
      how.kind = "wrong_layers";
      return make_conduct(how, on);
    };
    const auto liar = lab.add_server({0, 5}, {}, nullptr, lies).id();
    lab.add_server({0, 3});
    lab.add_server({3, 5});
    lab.add_client({.temperature = 0}, 1, 1, 1e-9);
    lab.ask({1, 2, 3}, 30);
    // The check begins at the end of the text.
    while (lab.shown.size() < 30) lab.world.run_for(10ms);
    lab.world.run_for(in_time ? 25s : 35s);
    CHECK(lab.answers().size() == (in_time ? 0 : 1));
    const auto waits = lab.world.observed<check_waits>();
    REQUIRE(waits.size() == 1);
    CHECK(waits.front().second.layers == layer_span{0, 5});
    lab.add_server({0, 3});
    lab.add_server({3, 5});
    lab.world.run_for(10s);
    REQUIRE(lab.answers().size() == 1);
    CHECK(lab.answers().front().disputed == !in_time);
    if (!in_time) continue;
    CHECK(lab.answers().front().tokens == honest);
    for (const auto& [who, each] : lab.world.observed<wrong_server>()) CHECK(each.server == liar);
  }
}
