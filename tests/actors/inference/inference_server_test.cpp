// actors/inference/inference_server by itself: limits, abuse, passes without state, and batches.
#include "tests/actors/inference/inference_lab.hpp"

#include <cmath>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

/// A lab whose first server holds all layers.
struct served_lab : inference_lab {
  explicit served_lab(const shared_model& model) : inference_lab(model) {
    add_server({0, 5});
    world.settle();
  }
};

/// A host that sends messages to server 0 and keeps the answers.
struct stranger {
  explicit stranger(inference_lab& of, const std::string& name = "stranger")
      : lab(of), host(of.world.add_host(name)) {
    log = std::make_shared<answers::log>();
    actor = lab.world.spawn<answers>(host, log);
  }
  using answers = collector<inference_output, inference_refused, pass_output>;

  inference_step step(std::uint64_t session, std::uint32_t from, std::vector<float> values) {
    inference_step out;
    out.reply_to = actor;
    out.session = session;
    out.token = ++token;
    out.first = 0;
    out.last = 5;
    out.samples = 1;
    out.most = 10;
    out.from = from;
    out.time = static_cast<std::uint32_t>(values.size() / 8);
    out.activations = payload{std::move(values)};
    return out;
  }
  template <class Message>
  void send(Message m) {
    caf::send_as(actor, lab.actor_of(0), std::move(m));
    lab.world.run_for(100ms);
  }
  std::vector<inference_output>& outputs() { return std::get<0>(*log); }
  std::vector<pass_output>& passes() { return std::get<2>(*log); }
  /// The reason of the last refusal, or none.
  refusal refused() {
    auto& all = std::get<1>(*log);
    const auto out = all.empty() ? refusal::none : static_cast<refusal>(all.back().why);
    all.clear();
    return out;
  }

  inference_lab& lab;
  mini_host& host;
  std::shared_ptr<answers::log> log;
  caf::actor actor;
  std::uint64_t token = 0;
};

std::vector<float> some_values(std::size_t tokens, std::uint64_t seed) {
  std::vector<float> out(tokens * 8);
  auto random = stream(seed, "values");
  for (auto& each : out) each = static_cast<float>(random.normal());
  return out;
}

} // namespace

TEST_CASE("a server refuses steps that do not fit, with the reason") {
  const auto model = random_model();
  inference_lab lab(model);
  lab.add_server({0, 5}, {.cache = 100});
  lab.world.settle();
  stranger client(lab);
  const auto refusal_of = [&](inference_step m) {
    client.send(std::move(m));
    return client.refused();
  };
  CHECK(refusal_of(client.step(1, 1, some_values(1, 1))) == refusal::unknown_session);
  auto m = client.step(1, 0, some_values(1, 1));
  m.last = 6;
  CHECK(refusal_of(m) == refusal::wrong_layers);
  m.last = 0;
  CHECK(refusal_of(m) == refusal::wrong_layers);
  m = client.step(1, 0, some_values(1, 1));
  m.time = 2;
  CHECK(refusal_of(m) == refusal::wrong_values);
  m = client.step(1, 0, some_values(1, 1));
  m.most = 65;
  CHECK(refusal_of(m) == refusal::wrong_position);
  m.most = 21;
  CHECK(refusal_of(m) == refusal::no_cache); // 21 tokens of 5 layers
  auto bad = some_values(1, 1);
  bad[3] = std::nanf("");
  CHECK(refusal_of(client.step(1, 0, bad)) == refusal::wrong_values);
  m = client.step(1, 0, some_values(1, 1));
  m.activations = payload::size_only(32);
  CHECK(refusal_of(m) == refusal::wrong_values);
  CHECK(client.outputs().empty());

  CHECK(refusal_of(client.step(1, 0, some_values(3, 1))) == refusal::none);
  CHECK(refusal_of(client.step(1, 4, some_values(1, 1))) == refusal::wrong_position);
  CHECK(refusal_of(client.step(1, 3, some_values(8, 1))) == refusal::wrong_position);
  CHECK(refusal_of(client.step(1, 3, some_values(7, 1))) == refusal::none);
  CHECK(client.outputs().size() == 2);
}

TEST_CASE("a step that goes back has the result of a session that never went further") {
  const auto model = random_model();
  served_lab lab(model);
  stranger client(lab);
  const auto values = some_values(4, 2);
  const auto part = [&](std::size_t from, std::size_t to) {
    return std::vector<float>(values.begin() + static_cast<long>(from * 8),
                              values.begin() + static_cast<long>(to * 8));
  };
  client.send(client.step(1, 0, part(0, 4)));
  client.send(client.step(2, 0, some_values(3, 9)));
  client.send(client.step(2, 0, part(0, 2)));
  client.send(client.step(2, 2, part(2, 4)));
  REQUIRE(client.outputs().size() == 4);
  const auto whole = client.outputs()[0].activations.floats();
  const auto tail = client.outputs()[3].activations.floats();
  CHECK(std::equal(tail.begin(), tail.end(), whole.begin() + 2 * 8));
}

TEST_CASE("values that overflow in one session do not harm the others of the batch") {
  // Norms take huge values, too. Layer 1 adds so much that a sum overflows before layer 2.
  const auto model = random_model(1e36F);
  served_lab lab(model);
  stranger first(lab, "first"), second(lab, "second");
  std::vector<float> huge(8, 3.4e38F);
  // All three steps wait for the first batch, and are one batch then.
  caf::send_as(first.actor, lab.actor_of(0), first.step(1, 0, some_values(1, 1)));
  caf::send_as(first.actor, lab.actor_of(0), first.step(2, 0, huge));
  caf::send_as(second.actor, lab.actor_of(0), second.step(1, 0, some_values(2, 3)));
  lab.world.run_for(1s);
  CHECK(first.outputs().size() == 1);
  CHECK(first.refused() == refusal::wrong_values);
  REQUIRE(second.outputs().size() == 1);
  stranger third(lab, "third");
  third.send(third.step(7, 0, some_values(2, 3)));
  REQUIRE(third.outputs().size() == 1);
  CHECK(std::ranges::equal(third.outputs()[0].activations.floats(),
                           second.outputs()[0].activations.floats()));
  const auto batches = lab.world.observed<batch_done>();
  REQUIRE(batches.size() == 3);
  CHECK(batches[1].second.steps == 2);
}

TEST_CASE("a pass without state has the gradient of the model's own blocks") {
  const auto model = random_model();
  served_lab lab(model);
  stranger client(lab);
  const auto values = some_values(6, 4), slopes = some_values(6, 5);
  const learn::pass_shape shape{2, 3};
  auto x = values;
  std::vector<std::vector<float>> entered;
  for (std::size_t i = 1; i < 4; ++i) {
    entered.push_back(x);
    x = model.layers[i]->forward(shape, x).value();
  }
  auto g = slopes;
  for (std::size_t i = 4; i-- > 1;) g = model.layers[i]->backward(shape, entered[i - 1], g).value();
  client.send(pass_request{client.actor, 1, 1, 4, 2, 3, 0, payload{values}, {}});
  client.send(pass_request{client.actor, 2, 1, 4, 2, 3, 0, payload{values}, payload{slopes}});
  REQUIRE(client.passes().size() == 2);
  CHECK(std::ranges::equal(client.passes()[0].activations.floats(), x));
  CHECK(std::ranges::equal(client.passes()[1].activations.floats(), g));
}

TEST_CASE("a step with prompts has the output of a pass with them") {
  const auto model = random_model();
  served_lab lab(model);
  stranger client(lab);
  const auto values = some_values(3, 4), prompts = some_values(5 * 2, 5);
  auto step = client.step(1, 0, values);
  step.prompt_length = 2;
  step.prompts = payload{prompts};
  client.send(step);
  pass_request pass{client.actor, 9, 0, 5, 1, 3, 0, payload{values}, {}};
  pass.prompt_length = 2;
  pass.prompts = payload{prompts};
  client.send(pass);
  REQUIRE(client.outputs().size() == 1);
  REQUIRE(client.passes().size() == 1);
  const auto with = client.passes()[0].activations.floats();
  CHECK(std::ranges::equal(client.outputs()[0].activations.floats(), with));
  client.send(client.step(2, 0, values));
  CHECK(!std::ranges::equal(client.outputs()[1].activations.floats(), with));

  pass.prompt_length = 4; // more than the tokens
  client.send(pass);
  CHECK(client.refused() == refusal::wrong_values);
  pass.prompt_length = 1; // fewer than the prompts
  client.send(pass);
  CHECK(client.refused() == refusal::wrong_values);
  step.session = 3;
  step.adapter = "unknown";
  client.send(step);
  CHECK(client.refused() == refusal::wrong_layers);
}

TEST_CASE("sessions of a client that dies are closed and their cache is free again") {
  const auto model = random_model();
  inference_lab lab(model);
  lab.add_server({0, 5}, {.cache = 100});
  lab.world.settle();
  {
    stranger client(lab);
    client.send(client.step(1, 0, some_values(1, 1)));
    client.send(client.step(2, 0, some_values(1, 1)));
    CHECK(client.outputs().size() == 2);
    client.send(client.step(3, 0, some_values(1, 1)));
    CHECK(client.refused() == refusal::no_cache);
    client.host.kill();
    lab.world.run_for(1s);
  }
  stranger next(lab, "next");
  next.send(next.step(1, 0, some_values(1, 1)));
  CHECK(next.refused() == refusal::none);
}

TEST_CASE("a draining server takes no new session and finishes those it has") {
  const auto model = random_model();
  served_lab lab(model);
  stranger client(lab);
  client.send(client.step(1, 0, some_values(1, 1)));
  lab.world.send(lab.actor_of(0), tick{inference_server::drain, 0});
  client.send(client.step(1, 1, some_values(1, 2)));
  CHECK(client.outputs().size() == 2);
  client.send(client.step(2, 0, some_values(1, 1)));
  CHECK(client.refused() == refusal::drains);
}

TEST_CASE("an answer may not go to a third host") {
  const auto model = random_model();
  served_lab lab(model);
  stranger client(lab), victim(lab, "victim");
  auto m = client.step(1, 0, some_values(1, 1));
  m.reply_to = victim.actor;
  client.send(m);
  CHECK(victim.outputs().empty());
  CHECK(lab.seen<misbehaved>() == 1);
}

TEST_CASE("a pushed step goes on with a session of its client and nothing else") {
  const auto model = random_model();
  served_lab lab(model);
  stranger client(lab), other(lab, "other");
  client.send(client.step(1, 0, some_values(2, 1)));
  REQUIRE(client.outputs().size() == 1);
  const auto push = [&](std::uint64_t session, std::uint32_t from) {
    auto m = client.step(session, from, some_values(1, 2));
    m.pushed = 1;
    other.send(std::move(m)); // the answer goes to the client
    return client.outputs().size();
  };
  CHECK(push(2, 2) == 1); // no such session
  CHECK(push(1, 0) == 1); // the step begins a session
  CHECK(push(1, 1) == 1); // the server has these tokens
  CHECK(push(1, 2) == 2);
  client.send(client.step(1, 2, some_values(1, 2)));
  REQUIRE(client.outputs().size() == 3);
  CHECK(std::ranges::equal(client.outputs()[1].activations.floats(),
                           client.outputs()[2].activations.floats()));
  CHECK(other.outputs().empty());
  CHECK(lab.seen<misbehaved>() == 0);
}

TEST_CASE("a server pushes its output to the next one which answers the client") {
  const auto model = random_model();
  inference_lab lab(model);
  lab.add_server({0, 2});
  lab.add_server({2, 5});
  lab.world.settle();
  stranger client(lab);
  const auto open = [&](std::size_t server, std::uint64_t session, layer_span layers) {
    auto m = client.step(session, 0, some_values(1, 1));
    m.first = layers.first;
    m.last = layers.last;
    caf::send_as(client.actor, lab.actor_of(server), m);
    lab.world.run_for(100ms);
  };
  open(0, 1, {0, 2});
  open(1, 2, {2, 5});
  REQUIRE(client.outputs().size() == 2);
  auto m = client.step(1, 1, some_values(1, 3));
  m.last = 2;
  m.push = {{lab.actor_of(1), 2, 77, 2, 5}};
  client.send(std::move(m));
  REQUIRE(client.outputs().size() == 4);
  CHECK(client.outputs()[3].token == 77);
  CHECK(client.outputs()[3].session == 2);
  // The client may send the same step itself, as after a push that was late.
  const auto middle = client.outputs()[2].activations.floats();
  auto direct = client.step(2, 1, {middle.begin(), middle.end()});
  direct.first = 2;
  caf::send_as(client.actor, lab.actor_of(1), direct);
  lab.world.run_for(100ms);
  REQUIRE(client.outputs().size() == 5);
  CHECK(std::ranges::equal(client.outputs()[4].activations.floats(),
                           client.outputs()[3].activations.floats()));
}

TEST_CASE("a client cannot have a server send activations to a host that is no server") {
  const auto model = random_model();
  served_lab lab(model);
  stranger client(lab);
  client.send(client.step(1, 0, some_values(1, 1)));
  using steps = collector<inference_step>;
  auto log = std::make_shared<steps::log>();
  const auto victim = lab.world.spawn<steps>(lab.world.add_host("victim"), log);
  for (std::uint32_t token = 1; token < 5; ++token) {
    auto m = client.step(1, token, some_values(1, token));
    m.push = {{victim, 2, 77, 2, 5}};
    client.send(std::move(m));
    lab.world.run_for(2s);
  }
  CHECK(client.outputs().size() == 5);
  CHECK(std::get<0>(*log).empty());
}

TEST_CASE("a client has a quarter of a server's places, and the others have room") {
  const auto model = random_model();
  served_lab lab(model);
  stranger greedy(lab, "greedy"), other(lab, "other");
  // The server begins with the first one. A quarter of 4096 wait.
  for (std::uint64_t n = 0; n < 1100; ++n)
    caf::send_as(greedy.actor, lab.actor_of(0), greedy.step(n % 60, 0, some_values(1, 1)));
  caf::send_as(other.actor, lab.actor_of(0), other.step(1, 0, some_values(1, 1)));
  lab.world.settle();
  CHECK(greedy.refused() == refusal::too_many);
  CHECK(other.refused() == refusal::none);
}
