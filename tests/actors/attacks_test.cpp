#include "actors/averaging/certificate.hpp"
#include "actors/averaging/messages.hpp"
#include "actors/averaging/round.hpp"
#include "actors/conduct/attacks.hpp"
#include "actors/dht/messages.hpp"
#include "actors/protocol_actor.hpp"
#include "tests/actors/support/message_filler.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <set>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;

namespace {

conduct_options options_of(std::string kind, duration from = {}, duration every = {},
                           double strength = 1, std::vector<std::string> messages = {}) {
  return {std::move(kind), from, every, strength, std::move(messages)};
}

struct sink final : protocol_actor {
  using protocol_actor::protocol_actor;
  caf::behavior make_behavior() override {
    return {[](const tick&) {}};
  }
};

struct attack_world {
  mini_world world;
  mini_host &attacker = world.add_host("mallory"), &victim = world.add_host("victim");
  caf::actor own = world.spawn<sink>(attacker), other = world.spawn<sink>(victim);

  std::vector<outgoing_message> altered(conduct& by, caf::message content) {
    std::vector<outgoing_message> out;
    by.alter({other, std::move(content)}, out);
    return out;
  }
};

member_ready vote(std::uint64_t number = 3) {
  member_ready out;
  out.group = {number, 7};
  out.member = 1;
  out.version = {number, 9};
  return out;
}

} // namespace

TEST_CASE("each field of each message can be changed, and only that field changes") {
  mini_world world(1, true);
  auto& host = world.add_host("a");
  const auto someone = world.spawn<sink>(host);
  rng random(3);
  filler fill{random, someone, true};
  std::size_t changed = 0;
  for_each_row(all_messages{}, [&]<class Row>() {
    using message = typename Row::type;
    message one;
    each_field(one, fill);
    const auto content = caf::make_message(one);
    const auto fields = count_fields(content);
    for (std::size_t field = 0; field < fields; ++field)
      for (std::uint64_t how : {0, 1, 5, 17}) {
        const auto other = change_field(content, field, how, {});
        REQUIRE(other);
        CHECK(name_of(*other) == message::message_name);
        ++changed;
      }
    CHECK(!change_field(content, fields, 0, {}));
  });
  CHECK(changed > 500);
}

TEST_CASE("an attack begins after `from` and strikes at most once in `every`") {
  attack_world w;
  const auto drops = make_conduct(
      options_of("dropped_messages", std::chrono::seconds(10), std::chrono::seconds(5)),
      w.attacker);
  CHECK(drops->alters_messages());
  CHECK(w.altered(*drops, caf::make_message(vote())).size() == 1);
  w.world.run_for(std::chrono::seconds(10));
  CHECK(w.altered(*drops, caf::make_message(vote())).empty());
  CHECK(w.altered(*drops, caf::make_message(vote())).size() == 1);
  w.world.run_for(std::chrono::seconds(5));
  CHECK(w.altered(*drops, caf::make_message(vote())).empty());
}

TEST_CASE("an attack on one type of message leaves the others alone") {
  attack_world w;
  const auto drops =
      make_conduct(options_of("dropped_messages", {}, {}, 1, {"member_ready"}), w.attacker);
  CHECK(w.altered(*drops, caf::make_message(vote())).empty());
  CHECK(w.altered(*drops, caf::make_message(join_withdrawn{4})).size() == 1);
}

TEST_CASE("repeated messages are the same message") {
  attack_world w;
  const auto repeats = make_conduct(options_of("repeated_messages", {}, {}, 4), w.attacker);
  const auto sent = w.altered(*repeats, caf::make_message(vote()));
  REQUIRE(sent.size() == 5);
  for (const auto& each : sent)
    CHECK(each.content.get_as<member_ready>(0).version == vote().version);
}

TEST_CASE("a borrowed identity is that of the receiver") {
  attack_world w;
  const auto borrows = make_conduct(options_of("borrowed_identity"), w.attacker);
  const auto sent = w.altered(*borrows, caf::make_message(join_withdrawn{w.attacker.id()}));
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].content.get_as<join_withdrawn>(0).peer == w.victim.id());
}

TEST_CASE("redirected replies go to an address of another host") {
  attack_world w;
  const auto redirects = make_conduct(options_of("redirected_replies"), w.attacker);
  contact other;
  other.address = w.other;
  w.altered(*redirects, caf::make_message(other));
  contact own;
  own.address = w.own;
  std::set<caf::actor> to;
  for (int i = 0; i < 20; ++i)
    to.insert(
        w.altered(*redirects, caf::make_message(own)).front().content.get_as<contact>(0).address);
  CHECK(to.contains(w.other));
}

TEST_CASE("equivocation gives receivers other values") {
  attack_world w;
  const auto lies = make_conduct(options_of("equivocation", {}, {}, 2), w.attacker);
  reduced_chunk chunk;
  chunk.data = payload{std::vector<float>{1, 2}};
  std::set<float> firsts;
  for (int i = 0; i < 3; ++i) {
    auto& host = w.world.add_host("r" + std::to_string(i));
    std::vector<outgoing_message> out;
    lies->alter({w.world.spawn<sink>(host), caf::make_message(chunk)}, out);
    firsts.insert(out.front().content.get_as<reduced_chunk>(0).data.floats()[0]);
  }
  CHECK(firsts.size() == 3);
}

TEST_CASE("attacks on values change a contribution, and leave one of weight zero alone") {
  attack_world w;
  round_request request;
  request.weight = 1;
  const auto attacked = [&](const char* kind, double strength) {
    payload values{std::vector<float>{1, -2}};
    make_conduct(options_of(kind, {}, {}, strength), w.attacker)->contribute(values, request);
    return std::vector<float>(values.floats().begin(), values.floats().end());
  };
  CHECK(attacked("flipped_signs", 10) == std::vector<float>{-10, 20});
  CHECK(std::fabs(attacked("huge_values", 1)[0]) > 1e29F);
  const auto random = attacked("random_direction", 3);
  CHECK(std::hypot(random[0], random[1]) == doctest::Approx(3 * std::sqrt(5.0)));
  request.weight = 0;
  CHECK(attacked("flipped_signs", 10) == std::vector<float>{1, -2});
}

TEST_CASE("two votes are each signed, and together they prove the deed to anybody") {
  attack_world w;
  const auto lies = make_conduct(options_of("two_votes"), w.attacker);
  auto first = vote();
  first.by = w.attacker.sign(vote_statement(first.group, first.version));
  const auto sent = w.altered(*lies, caf::make_message(first));
  REQUIRE(sent.size() == 2);
  const auto second = sent[1].content.get_as<member_ready>(0);
  CHECK(sent[0].content.get_as<member_ready>(0).version == first.version);
  CHECK((second.group == first.group && second.version != first.version));
  evidence proof;
  proof.culprit = w.attacker.key();
  proof.subject = first.group;
  proof.first = first.version;
  proof.second = second.version;
  proof.first_by = first.by;
  proof.second_by = second.by;
  CHECK(holds(proof, [&](const key256& key, const digest& text, const signature& by) {
    return w.victim.is_signed_by(key, text, by);
  }));
  CHECK(w.altered(*lies, caf::make_message(join_withdrawn{4})).size() == 1);
}
