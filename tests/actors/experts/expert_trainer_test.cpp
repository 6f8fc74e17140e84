// actors/experts/expert_trainer with servers: the loss falls, and deaths of experts' hosts stop no
// step.
#include "tests/actors/experts/expert_lab.hpp"

#include <numeric>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

std::vector<expert_step> steps_of(const expert_lab& lab) {
  std::vector<expert_step> out;
  for (const auto& each : lab.world.observed<expert_step>()) out.push_back(each.second);
  return out;
}

double mean_loss(std::span<const expert_step> steps) {
  double out = 0;
  for (const auto& each : steps) out += each.loss;
  return out / static_cast<double>(steps.size());
}

/// The steps of a trainer with one host of most experts, and one that needs `batch_time` for a
/// batch.
std::vector<expert_step> steps_with_slow_host(duration batch_time, duration step_time,
                                              std::uint64_t steps) {
  expert_lab lab;
  auto slow = lab.server_config();
  slow.experts = {{0, {0, 0}}, {1, {0, 0}}};
  slow.batch_time = batch_time;
  lab.add_server({{0, {0, 1}}, {0, {1, 0}}, {0, {1, 1}}, {1, {0, 1}}, {1, {1, 0}}, {1, {1, 1}}});
  lab.add_server(std::move(slow));
  lab.world.run_for(1s);
  auto config = lab.trainer_config();
  config.timeout = 5s;
  config.step_time = step_time;
  config.steps = steps;
  lab.add_trainer(std::move(config));
  lab.world.run_for(300s);
  const auto out = steps_of(lab);
  REQUIRE(out.size() == steps);
  return out;
}

/// Four trainers with samples of their own, on four hosts of experts.
void add_four_trainers(expert_lab& lab, duration share_every, std::uint64_t steps) {
  lab.deal(4);
  lab.world.run_for(1s);
  for (std::uint64_t n = 0; n < 4; ++n) {
    auto config = lab.trainer_config();
    config.samples = [n](std::uint64_t step) { return some_images(1000 * n + step, 8); };
    config.share_every = share_every;
    config.steps = steps;
    lab.add_trainer(std::move(config));
  }
}

} // namespace

TEST_CASE("a trainer learns with experts of other hosts and measures held-out samples") {
  expert_lab lab;
  lab.deal(4);
  lab.world.run_for(1s);
  auto config = lab.trainer_config();
  config.steps = 300;
  config.held_out = some_images(1'000'000, 60);
  config.evaluate_every = 100;
  lab.add_trainer(std::move(config));
  lab.world.run_for(200s);
  const auto steps = steps_of(lab);
  REQUIRE(steps.size() == 300);
  CHECK(mean_loss(std::span(steps).last(30)) < 0.5 * mean_loss(std::span(steps).first(10)));
  for (const auto& each : steps) CHECK(each.unanswered + each.lost == 0);
  const auto judged = lab.world.observed<expert_evaluated>();
  REQUIRE(judged.size() == 4);
  CHECK(judged.back().second.rows == 60);
  CHECK(judged.back().second.right > 50);
  CHECK(lab.world.observed<misbehaved>().empty());
}

TEST_CASE("one trainer with one expert in each batch has no staleness") {
  expert_lab lab;
  lab.deal(2);
  lab.world.run_for(1s);
  auto config = lab.trainer_config();
  config.steps = 20;
  lab.add_trainer(std::move(config));
  lab.world.run_for(30s);
  std::uint64_t backward = 0;
  for (const auto& each : lab.world.observed<expert_batch_done>()) {
    CHECK(each.second.staleness == 0);
    backward += each.second.backward ? 1 : 0;
  }
  CHECK(backward > 0);
}

TEST_CASE("several trainers make gradients stale and their trunks come together") {
  expert_lab lab;
  add_four_trainers(lab, 2s, 150);
  lab.world.run_for(200s);
  const auto steps = steps_of(lab);
  REQUIRE(steps.size() == 600);
  CHECK(mean_loss(std::span(steps).last(60)) < 0.6 * mean_loss(std::span(steps).first(20)));
  std::uint64_t staleness = 0;
  for (const auto& each : lab.world.observed<expert_batch_done>())
    staleness += each.second.staleness;
  CHECK(staleness > 0);
  CHECK(lab.world.observed<misbehaved>().empty());
}

TEST_CASE("deaths of hosts stop no step and the experts come back") {
  expert_lab lab;
  lab.deal(4);
  lab.world.run_for(30s); // copies were sent
  auto config = lab.trainer_config();
  config.steps = 400;
  lab.add_trainer(std::move(config));
  lab.world.run_for(2s);
  lab.servers[0]->kill();
  lab.world.run_for(2s);
  lab.servers[2]->kill();
  lab.world.run_for(300s);
  const auto steps = steps_of(lab);
  REQUIRE(steps.size() == 400);
  std::uint64_t unanswered = 0;
  for (const auto& each : steps) unanswered += each.unanswered;
  CHECK(unanswered == 0);
  std::size_t revived = 0;
  for (const auto& each : lab.world.observed<expert_held>()) revived += each.second.revived ? 1 : 0;
  // Experts that came back on the second host came back twice.
  CHECK(revived >= 4);
  CHECK(mean_loss(std::span(steps).last(40)) < 0.6 * mean_loss(std::span(steps).first(10)));
}

TEST_CASE("a step goes on without an expert that does not answer in time") {
  std::uint64_t lost = 0;
  // A host that never answers is as one whose death nobody has detected yet.
  for (const auto& each : steps_with_slow_host(10h, 100ms, 500)) {
    lost += each.lost;
    CHECK(each.unanswered == 0);
    // Before the first answer the trainer does not know how long answers take.
    CHECK(each.time < (each.step == 1 ? 11s : 2s));
  }
  // The host is tried again when its ban is over.
  CHECK(lost >= 2);
  CHECK(lost < 20);
}

TEST_CASE("a slow host that answers steadily is never left out") {
  for (const auto& each : steps_with_slow_host(1500ms, 10ms, 30)) CHECK(each.lost == 0);
}

TEST_CASE("a host that was late gets calls again as soon as it has answered") {
  expert_lab lab;
  lab.deal(2);
  lab.world.run_for(1s);
  auto config = lab.trainer_config();
  config.timeout = 5s;
  config.step_time = 100ms;
  lab.add_trainer(std::move(config));
  lab.world.run_for(20s);
  REQUIRE(lab.world.observed<expert_call_lost>().empty());

  // A request with many rows keeps the first host busy for two seconds.
  const auto began = lab.world.now();
  auto& host = lab.world.add_host("stranger");
  auto log = std::make_shared<collector<expert_answer>::log>();
  expert_pass many;
  many.reply_to = lab.world.spawn<collector<expert_answer>>(host, log);
  many.place = {0, 0};
  many.rows = 1000;
  many.x = payload{std::vector<float>(1000 * expert_lab::width, 0.1F)};
  for (many.request = 1; many.request <= 20; ++many.request)
    caf::send_as(many.reply_to, lab.actors[0], many);
  lab.world.run_for(4s);
  REQUIRE(std::get<0>(*log).size() == 20);
  CHECK_FALSE(lab.world.observed<expert_call_lost>().empty());
  lab.world.run_for(2s);
  // In the last two of six seconds the host has work again, long before a ban of 15 s is over.
  const auto lost = lab.world.observed<expert_call_lost>().size();
  auto batches = [&] {
    std::size_t out = 0;
    for (const auto& [peer, batch] : lab.world.observed<expert_batch_done>())
      out += peer == lab.servers[0]->id() ? 1 : 0;
    return out;
  };
  const auto before = batches();
  lab.world.run_for(2s);
  CHECK(batches() > before + 10);
  CHECK(lab.world.observed<expert_call_lost>().size() == lost);
  CHECK(lab.world.now() < began + 10s);
}

TEST_CASE("a trainer without any expert waits, then passes the layers and makes its steps") {
  expert_lab lab;
  auto config = lab.trainer_config();
  config.steps = 3;
  config.pauses = 2;
  lab.add_trainer(std::move(config));
  lab.world.run_for(60s);
  const auto steps = steps_of(lab);
  REQUIRE(steps.size() == 3);
  for (const auto& each : steps) {
    CHECK(each.unanswered == 16); // 8 rows in 2 layers
    CHECK(each.time >= 4s);       // two pauses of a second in each layer
  }
}

TEST_CASE("a trunk of another size or with wrong values reaches no trainer") {
  expert_lab lab;
  auto config = lab.trainer_config();
  config.steps = 1;
  lab.add_trainer(std::move(config));
  auto& host = lab.world.add_host("stranger");
  auto log = std::make_shared<collector<tick>::log>();
  const auto stranger = lab.world.spawn<collector<tick>>(host, log);
  caf::send_as(stranger, lab.trainers[0], trunk_share{1, payload{std::vector<float>(3)}});
  std::vector<float> bad(lab.net->parameter_count());
  bad[0] = std::numeric_limits<float>::infinity();
  caf::send_as(stranger, lab.trainers[0], trunk_share{1, payload{bad}});
  caf::send_as(stranger, lab.trainers[0],
               trunk_share{1, payload::size_only(4 * lab.net->parameter_count())});
  lab.world.run_for(1s);
  CHECK(lab.world.observed<misbehaved>().size() == 3);
}

TEST_CASE("a trunk that is far larger than the trainer's reaches it not, and a host gives one") {
  const auto loss_after = [](const std::vector<float>& sizes) {
    expert_lab lab;
    auto config = lab.trainer_config();
    config.steps = 1;
    config.step_time = 10s;
    config.pauses = 0;
    lab.add_trainer(std::move(config));
    auto& host = lab.world.add_host("stranger");
    const auto stranger =
        lab.world.spawn<collector<tick>>(host, std::make_shared<collector<tick>::log>());
    for (const auto size : sizes)
      caf::send_as(stranger, lab.trainers[0],
                   trunk_share{1, payload{std::vector<float>(lab.net->parameter_count(), size)}});
    lab.world.run_for(1min);
    REQUIRE(lab.world.observed<expert_step>().size() == 1);
    return std::pair(lab.world.observed<expert_step>()[0].second.loss,
                     lab.world.observed<misbehaved>().size());
  };
  const auto alone = loss_after({}), huge = loss_after({1e20F});
  CHECK(huge.first == alone.first);
  CHECK(huge.second == 1);
  CHECK(loss_after({0.1F, 0.3F, 0.2F}) == loss_after({0.1F}));
}
