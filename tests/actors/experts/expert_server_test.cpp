// actors/experts/expert_server by itself: passes, repeated requests, abuse, copies and revival.
#include "actors/dht/host_record.hpp"
#include "tests/actors/experts/expert_lab.hpp"

#include <limits>
#include <string>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

const expert_id first{0, {0, 0}};

/// A host that sends messages to server 0 and keeps the answers.
struct stranger {
  using answers = collector<expert_answer, expert_refused>;

  /// The name is the member's.
  explicit stranger(expert_lab& of, std::string name = "stranger")
      : lab(of), host(of.world.add_host(std::move(name))) {
    log = std::make_shared<answers::log>();
    actor = lab.world.spawn<answers>(host, log);
  }
  expert_pass pass(std::uint64_t request, std::vector<float> x, std::vector<float> gradient = {},
                   std::uint64_t version = 0) const {
    expert_pass out;
    out.reply_to = actor;
    out.request = request;
    out.place = first.place;
    out.rows = static_cast<std::uint32_t>(x.size() / expert_lab::width);
    out.version = version;
    out.x = payload{std::move(x)};
    if (!gradient.empty()) out.gradient = payload{std::move(gradient)};
    return out;
  }
  template <class Message>
  void send(Message m, std::size_t server = 0) {
    caf::send_as(actor, lab.actors[server], std::move(m));
    lab.world.run_for(100ms);
  }
  std::vector<expert_answer>& answered() { return std::get<0>(*log); }
  /// The reason of the last refusal, or none.
  expert_refusal refused() {
    auto& all = std::get<1>(*log);
    const auto out =
        all.empty() ? expert_refusal::none : static_cast<expert_refusal>(all.back().why);
    all.clear();
    return out;
  }
  expert_refusal refusal_of(expert_pass m) {
    send(std::move(m));
    return refused();
  }

  expert_lab& lab;
  mini_host& host;
  std::shared_ptr<answers::log> log;
  caf::actor actor;
};

std::vector<float> values(std::uint64_t seed, std::size_t rows = 1) {
  std::vector<float> out(rows * expert_lab::width);
  auto random = stream(seed, "values");
  for (auto& each : out) each = static_cast<float>(random.normal());
  return out;
}

std::vector<float> floats(const payload& of) {
  const auto all = of.floats();
  return {all.begin(), all.end()};
}

} // namespace

TEST_CASE("an expert's answers are those of its block, and a backward pass is its local gradient") {
  expert_lab lab;
  lab.add_server({first});
  stranger client(lab);
  const auto block = learn::make_feed_forward(expert_lab::width);
  auto parameters = block->initial_parameters(stream(1, "experts.initial", 0, 0).next());
  const auto x = values(1, 3), gradient = values(2, 3);
  client.send(client.pass(1, x));
  REQUIRE(client.answered().size() == 1);
  CHECK(floats(client.answered()[0].values) == block->forward(parameters, x).value());
  CHECK(client.answered()[0].version == 0);
  client.send(client.pass(2, x, gradient));
  std::vector<float> sum(parameters.size()), state(3 * parameters.size());
  const auto of_x = block->backward(parameters, x, gradient, sum).value();
  REQUIRE(client.answered().size() == 2);
  CHECK(floats(client.answered()[1].values) == of_x);
  CHECK(client.answered()[1].version == 1);
  // The next forward pass has the parameters after one step.
  kernels::amsgrad_step({}, 1, sum, parameters, state);
  client.send(client.pass(3, x));
  CHECK(floats(client.answered()[2].values) == block->forward(parameters, x).value());
}

TEST_CASE("a repeated backward pass gets the same answer and makes one step") {
  expert_lab lab;
  lab.add_server({first});
  stranger client(lab);
  const auto m = client.pass(7, values(1), values(2));
  caf::send_as(client.actor, lab.actors[0], m); // while the first one is under way
  caf::send_as(client.actor, lab.actors[0], m);
  lab.world.run_for(100ms);
  REQUIRE(client.answered().size() == 1);
  client.send(m);
  REQUIRE(client.answered().size() == 2);
  CHECK(floats(client.answered()[0].values) == floats(client.answered()[1].values));
  CHECK(client.answered()[1].version == 1);
  CHECK(lab.world.observed<expert_repeat_answered>().size() == 1);
  client.send(client.pass(8, values(1), values(2), 1));
  CHECK(client.answered()[2].version == 2);
}

TEST_CASE("a server refuses requests that do not fit, with the reason, and counts abuse") {
  expert_lab lab;
  auto config = lab.server_config();
  config.experts = {first};
  config.most_rows = 4;
  config.most_staleness = 1;
  lab.add_server(std::move(config));
  stranger client(lab), other(lab);
  auto m = client.pass(1, values(1));
  m.place = {1, 1};
  CHECK(client.refusal_of(m) == expert_refusal::unknown_expert);
  m.place = {0, 0, 0, 0};
  CHECK(client.refusal_of(m) == expert_refusal::unknown_expert);
  CHECK(client.refusal_of(client.pass(2, values(1, 5))) == expert_refusal::wrong_values);
  m = client.pass(3, values(1));
  m.rows = 2;
  CHECK(client.refusal_of(m) == expert_refusal::wrong_values);
  m.rows = 4'000'000'000;
  CHECK(client.refusal_of(m) == expert_refusal::wrong_values);
  auto bad = values(1);
  bad[2] = std::numeric_limits<float>::quiet_NaN();
  CHECK(client.refusal_of(client.pass(4, bad)) == expert_refusal::wrong_values);
  CHECK(client.refusal_of(client.pass(5, values(1), bad)) == expert_refusal::wrong_values);
  CHECK(client.refusal_of(client.pass(6, values(1), values(1, 2))) == expert_refusal::wrong_values);
  // The expert makes three steps after the forward pass of version 0.
  for (std::uint64_t n = 0; n < 3; ++n) client.send(client.pass(10 + n, values(1), values(2), n));
  CHECK(client.refusal_of(client.pass(20, values(1), values(2), 0)) == expert_refusal::stale);
  CHECK(client.refusal_of(client.pass(20, values(1), values(2), 2)) == expert_refusal::none);
  CHECK(lab.world.observed<misbehaved>().empty());
  m = client.pass(30, values(1));
  m.reply_to = other.actor;
  client.send(m);
  CHECK(lab.world.observed<misbehaved>().size() == 1);
  CHECK(client.answered().size() == 4);
}

TEST_CASE("a dead host's experts come back from the freshest copy, once each") {
  expert_lab lab;
  auto& owner = lab.add_server({first, {1, {1, 0}}});
  for (int n = 0; n < 4; ++n) lab.add_server(std::vector<expert_id>{});
  lab.world.run_for(25s); // all know each other, and copies were sent
  stranger client(lab);
  client.send(client.pass(1, values(1), values(2)));
  client.send(client.pass(2, values(3), values(4)));
  lab.world.run_for(8s); // the next copies
  const auto before = lab.world.observed<expert_held>().size();
  owner.kill();
  lab.world.run_for(60s);
  const auto held = lab.world.observed<expert_held>();
  REQUIRE(held.size() == before + 2);
  for (std::size_t n = before; n < held.size(); ++n) {
    CHECK(held[n].second.revived);
    CHECK(held[n].second.steps == (held[n].second.which == first ? 2U : 0U));
  }
  CHECK(lab.world.observed<expert_given_up>().empty());
  CHECK(lab.world.observed<misbehaved>().empty());
  // The server that revived it goes on where the owner was.
  const auto by = std::find_if(held.begin() + static_cast<std::ptrdiff_t>(before), held.end(),
                               [](const auto& each) { return each.second.which == first; });
  std::size_t index = 0;
  while (lab.servers[index]->id() != by->first) ++index;
  client.send(client.pass(3, values(1)), index);
  REQUIRE_FALSE(client.answered().empty());
  CHECK(client.answered().back().version == 2);
}

TEST_CASE("a host with fewer steps gives its expert up to another host that has it") {
  expert_lab lab;
  lab.add_server({first});
  auto& second = lab.add_server({first});
  lab.world.run_for(1s);
  stranger client(lab);
  client.send(client.pass(1, values(1), values(2)));
  lab.world.run_for(60s);
  const auto gone = lab.world.observed<expert_given_up>();
  REQUIRE(gone.size() == 1);
  CHECK(gone[0].first == second.id());
  client.send(client.pass(2, values(1)), 1);
  CHECK(client.refused() == expert_refusal::unknown_expert);
}

TEST_CASE("copies that no honest server sends are counted and kept out") {
  expert_lab lab;
  lab.add_server(std::vector<expert_id>{});
  stranger client(lab);
  expert_copy m;
  m.owner = client.actor;
  m.place = {0, 5};
  client.send(m);
  m.place = {0, 0};
  m.values = payload{std::vector<float>(3)};
  client.send(m);
  m.owner = lab.actors[0];
  client.send(m);
  CHECK(lab.world.observed<misbehaved>().size() == 3);
  client.host.kill();
  lab.world.run_for(30s);
  CHECK(lab.world.observed<expert_held>().empty());
}

namespace {

/// The stranger's record claims so many steps of the first expert.
void claim(stranger& by, const std::string& key, std::uint32_t at, std::uint64_t steps) {
  caf::send_as(by.actor, by.lab.server_config().dht,
               store{key, host_record(by.host, by.actor, pack_coordinates({{at, steps}}), 1h)});
  by.lab.world.run_for(100ms);
}

/// A stranger claims many steps under the key, and the owner of the expert dies.
void check_revived_despite_claim(const std::string& key) {
  expert_lab lab;
  auto& owner = lab.add_server({first});
  for (int n = 0; n < 3; ++n) lab.add_server(std::vector<expert_id>{});
  lab.world.run_for(25s);
  stranger liar(lab);
  claim(liar, key, 0, std::uint64_t{1} << 60);
  owner.kill();
  lab.world.run_for(2min);
  const auto held = lab.world.observed<expert_held>();
  REQUIRE(!held.empty());
  CHECK(held.back().second.revived);
}

} // namespace

TEST_CASE("a record that claims many steps takes no expert from a host that holds it") {
  expert_lab lab;
  lab.add_server({first});
  stranger liar(lab), client(lab);
  claim(liar, prefix_key("m", 0, {0}), 0, std::uint64_t{1} << 60);
  // Nobody calls the expert. The host asks the other one for a row, and gets none.
  lab.world.run_for(3min);
  CHECK(lab.world.observed<expert_given_up>().empty());
  client.send(client.pass(2, values(1)));
  CHECK(client.refused() == expert_refusal::none);
}

TEST_CASE("a record of an expert that its host does not hold stops no host from beginning it") {
  for (const bool is_refused : {false, true}) {
    expert_lab lab;
    stranger liar(lab);
    // A server without the expert refuses the row, and a stranger does not answer.
    if (is_refused) lab.add_server(std::vector<expert_id>{});
    const auto& by = is_refused ? lab.actors[0] : liar.actor;
    auto& host = is_refused ? *lab.servers[0] : liar.host;
    caf::send_as(by, lab.server_config().dht,
                 store{prefix_key("m", 0, {0}),
                       host_record(host, by, pack_coordinates({{0, 1U << 30}}), 1h)});
    const expert_trainer_record trains;
    caf::send_as(
        liar.actor, lab.server_config().dht,
        store{expert_trainers_key("m"), host_record(liar.host, liar.actor, trains.pack(), 1h)});
    auto config = lab.server_config();
    config.hand = {first};
    config.epoch_of = 64;
    lab.add_server(std::move(config));
    lab.world.run_for(30s);
    const auto held = lab.world.observed<expert_held>();
    REQUIRE(held.size() == 1);
    CHECK(held[0].second.which == first);
  }
}

TEST_CASE("a record of an expert that its host does not hold stops no revival") {
  check_revived_despite_claim(prefix_key("m", 0, {0}));
}

TEST_CASE("huge gradients of one trainer spoil no expert") {
  expert_lab lab;
  lab.add_server({first});
  stranger one(lab, "one"), two(lab, "two"), liar(lab, "liar");
  one.send(one.pass(1, values(1), values(2)));
  two.send(two.pass(1, values(3), values(4)));
  auto huge = values(5);
  for (auto& value : huge) value *= 1e6F;
  CHECK(liar.refusal_of(liar.pass(1, values(6), huge)) == expert_refusal::wrong_values);
  CHECK(liar.refusal_of(liar.pass(2, huge, values(6))) == expert_refusal::wrong_values);
  // The expert has made the two steps of the others.
  one.send(one.pass(2, values(1)));
  CHECK(one.answered().back().version == 2);
  CHECK(liar.refusal_of(liar.pass(3, values(6), values(7))) == expert_refusal::none);
}

TEST_CASE("a trainer has a quarter of a host's places, and the others have room") {
  expert_lab lab;
  auto config = lab.server_config();
  config.experts = {first};
  config.most_waiting = 8;
  config.batch_time = 10s;
  lab.add_server(std::move(config));
  stranger liar(lab, "liar"), client(lab, "client");
  for (std::uint64_t n = 0; n < 20; ++n)
    caf::send_as(liar.actor, lab.actors[0], liar.pass(n, values(1)));
  lab.world.run_for(100ms);
  // One is computed, and two wait.
  CHECK(std::get<1>(*liar.log).size() == 17);
  CHECK(liar.refused() == expert_refusal::too_many);
  client.send(client.pass(1, values(1)));
  CHECK(client.refused() == expert_refusal::none);
  lab.world.run_for(1min);
  CHECK(client.answered().size() == 1);
}

TEST_CASE("an offer that leads to no expert does not stop its revival") {
  check_revived_despite_claim(revival_key("m", first));
}
