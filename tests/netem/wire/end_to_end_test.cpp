#include "netem/fabric.hpp"
#include "netem/wire/context.hpp"
#include "netem/wire/end_to_end.hpp"
#include "tests/netem/wire/swarm.hpp"

#include <algorithm>

using namespace shoal;
using namespace shoal::netem::wire;

namespace {

/// A member of the swarm with its node id.
struct member {
  own_keys keys;
  node_key node;

  member(const moderator& by, const char* name) {
    auto key = std::make_shared<const signing_key>(signing_key::make());
    keys = {key, admit(by, name, *key)};
    const auto& bytes = key->public_key();
    const std::string identity(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    node = key_of(netem::fabric::node_of(identity, 4));
  }
  /// This member's end of pipe 0 of link 5.
  end_to_end end_with(const member& other, bool dialled) const {
    return {keys, {node, other.node, 5, 0, dialled}};
  }
};

frame text_frame(std::string_view text) {
  return {std::vector<char>(text.begin(), text.end()), {}};
}
payload bytes_on_the_way(const frame& what) {
  const auto bytes = std::as_bytes(std::span(what.head));
  return payload{std::vector<std::byte>(bytes.begin(), bytes.end())};
}
std::string text_of(const std::optional<payload>& what) {
  if (!what) return "refused";
  return {reinterpret_cast<const char*>(what->bytes().data()), what->size()};
}
/// Sends one frame from one end to the other.
std::string pass(end_to_end& from, end_to_end& to, std::string_view text) {
  const auto sent = from.protect(text_frame(text));
  return sent ? text_of(to.open(bytes_on_the_way(*sent))) : "not sent";
}

struct swarm_of_three {
  moderator reef = new_moderator();
  member one{reef, "lab-1"}, two{reef, "lab-2"}, mallory{reef, "mallory"};
};

} // namespace

TEST_CASE("relayed link: two members know each other's certificates and read each other's frames") {
  const swarm_of_three all;
  auto dials = all.one.end_with(all.two, true), answers = all.two.end_with(all.one, false);
  CHECK(dials.certificate().empty());
  CHECK(pass(dials, answers, "hello") == "hello");
  CHECK_FALSE(dials.protect(text_frame("too early"))); // there is no common key yet
  CHECK(pass(answers, dials, "hello to you") == "hello to you");
  CHECK(dials.certificate() == all.two.keys.certificate);
  CHECK(answers.certificate() == all.one.keys.certificate);
  for (const std::size_t size : {1, 7, 64, 100'000}) {
    const std::string text(size, 'x');
    CHECK(pass(dials, answers, text) == text);
    CHECK(pass(answers, dials, text) == text);
  }
  // The parts of a frame arrive as one frame that starts at a multiple of eight.
  frame parts = text_frame("head");
  parts.behind.push_back(bytes_on_the_way(text_frame("tail")));
  const auto opened = answers.open(bytes_on_the_way(*dials.protect(parts)));
  CHECK(text_of(opened) == "headtail");
  CHECK(reinterpret_cast<std::uintptr_t>(opened->bytes().data()) % 8 == 0);
}

TEST_CASE("relayed link: a relay can neither read nor change nor repeat nor reorder frames") {
  const swarm_of_three all;
  auto dials = all.one.end_with(all.two, true), answers = all.two.end_with(all.one, false);
  const auto greeting = bytes_on_the_way(*dials.protect(text_frame("hello")));
  REQUIRE(answers.open(greeting));
  REQUIRE(pass(answers, dials, "hello") == "hello");
  const std::string secret = "the gradient of one";
  const auto first = bytes_on_the_way(*dials.protect(text_frame(secret)));
  const auto second = bytes_on_the_way(*dials.protect(text_frame(secret)));
  CHECK(text_of(first).find(secret) == std::string::npos);
  CHECK(text_of(first) != text_of(second));
  SUBCASE("changed") {
    for (std::size_t i : {std::size_t{8}, first.size() / 2, first.size() - 1}) {
      auto other = all.two.end_with(all.one, false);
      std::vector<std::byte> changed(first.bytes().begin(), first.bytes().end());
      changed[i] ^= std::byte{1};
      CHECK_FALSE(answers.open(payload{std::move(changed)}));
      break; // an end that has refused a frame is not used again
    }
  }
  SUBCASE("cut") {
    CHECK_FALSE(answers.open(first.slice(0, first.size() - 1)));
  }
  SUBCASE("in clear text") {
    CHECK_FALSE(answers.open(bytes_on_the_way(text_frame(secret))));
  }
  SUBCASE("dropped") {
    CHECK_FALSE(answers.open(second));
  }
  SUBCASE("repeated") {
    CHECK(answers.open(first));
    CHECK_FALSE(answers.open(first));
  }
  SUBCASE("sent back") {
    CHECK_FALSE(dials.open(first));
  }
  SUBCASE("greeted again") {
    CHECK_FALSE(answers.open(greeting));
  }
}

TEST_CASE("relayed link: a member cannot greet in the name of another member's node") {
  const swarm_of_three all;
  auto victim = all.two.end_with(all.one, false);
  // Mallory has a good certificate, and says that it is the node of lab-1.
  end_to_end forged(all.mallory.keys, {all.one.node, all.two.node, 5, 0, true});
  CHECK(pass(forged, victim, "hello") == "refused");
  CHECK(victim.certificate().empty());
  // Mallory shows the certificate of lab-1, and has not its key.
  end_to_end borrowed({all.mallory.keys.key, all.one.keys.certificate},
                      {all.one.node, all.two.node, 5, 0, true});
  CHECK(pass(borrowed, victim, "hello") == "refused");
  // The incarnation is a part of the node id.
  auto older = all.one.node;
  --older.incarnation;
  end_to_end before(all.one.keys, {older, all.two.node, 5, 0, true});
  CHECK(pass(before, victim, "hello") == "refused");
  // The same end takes the true greeting.
  auto honest = all.one.end_with(all.two, true);
  CHECK(pass(honest, victim, "hello") == "hello");
}

TEST_CASE("relayed link: a greeting counts for its receiver and link and pipe and role only") {
  const swarm_of_three all;
  const auto open = [&](const relayed_ends& as_sent, const relayed_ends& as_read) {
    end_to_end from(all.one.keys, as_sent), to(all.two.keys, as_read);
    return pass(from, to, "hello") == "hello";
  };
  const relayed_ends sent{all.one.node, all.two.node, 5, 0, true},
      read{all.two.node, all.one.node, 5, 0, false};
  CHECK(open(sent, read));
  auto changed = read;
  changed.own = all.mallory.node;
  CHECK_FALSE(open(sent, changed));
  changed = read;
  changed.link = 6;
  CHECK_FALSE(open(sent, changed));
  changed = read;
  changed.which = 1;
  CHECK_FALSE(open(sent, changed));
  changed = read;
  changed.dialled = true;
  CHECK_FALSE(open(sent, changed));
}

TEST_CASE("relayed link: a repeated greeting of an earlier link gives no key") {
  const swarm_of_three all;
  auto dials = all.one.end_with(all.two, true), answers = all.two.end_with(all.one, false);
  const auto recorded = bytes_on_the_way(*dials.protect(text_frame("hello")));
  REQUIRE(answers.open(recorded));
  const auto answer = bytes_on_the_way(*answers.protect(text_frame("hello")));
  REQUIRE(dials.open(answer));
  const auto message = bytes_on_the_way(*dials.protect(text_frame("a message")));
  // Both ends begin again, and a relay repeats what it recorded.
  auto answers_again = all.two.end_with(all.one, false);
  REQUIRE(answers_again.open(recorded));
  answers_again.protect(text_frame("hello"));
  CHECK_FALSE(answers_again.open(message));
  // An answer names the key that it answers.
  auto dials_again = all.one.end_with(all.two, true);
  dials_again.protect(text_frame("hello"));
  CHECK_FALSE(dials_again.open(answer));
}
