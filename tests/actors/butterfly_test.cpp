// One round as state machines: streaming, slow senders, lost reducers, and a single result under
// all faults.
#include "actors/averaging/part_reduction.hpp"
#include "actors/probes.hpp"
#include "actors/trust/identity.hpp"
#include "kernels/averaging_plan.hpp"
#include "tests/actors/support/round_lab.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <type_traits>
#include <utility>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

lab_options of(std::size_t members) {
  lab_options out;
  for (std::size_t m = 0; m < members; ++m) out.members.push_back({m + 2, 1});
  return out;
}

void check_fine(const round_lab& lab) {
  for (const auto& error : lab.errors()) FAIL_CHECK(error << " (" << lab.outcomes() << ")");
}

payload floats(std::initializer_list<float> values) {
  return payload{std::vector<float>(values)};
}

std::vector<float> bits(const round_lab& lab, std::uint32_t member) {
  auto x = lab.result(member).values.floats();
  return {x.begin(), x.end()};
}

} // namespace

// A round may begin the next one from its own call, so what holds rounds must not move them.
static_assert(!std::is_move_constructible_v<butterfly> && !std::is_copy_constructible_v<butterfly>);

// -- part_reduction -------------------------------------------------------------------------------

TEST_CASE("a chunk is returned as soon as all senders' pieces of it have arrived") {
  part_reduction part({16, 8}, {1, 3}, false, averaging_config{}, 0s);
  part.open({true, true}, 0s);
  CHECK(part.add(1, 1, floats({4, 8}), 0s) == part_reduction::taken::yes);
  CHECK(!part.next());
  CHECK(part.add(0, 1, floats({0, 0}), 0s) == part_reduction::taken::yes);
  auto done = part.next();
  REQUIRE(done);
  CHECK(done->chunk == 1);
  CHECK(done->senders == std::vector<std::uint32_t>{0, 1});
  CHECK(done->values.floats()[0] == 3);
  CHECK(done->values.floats()[1] == 6);
  CHECK(!part.next());
  CHECK(part.waits_for(0));
}

TEST_CASE("a sender that is left out half-way is in the chunks that it delivered and in no other") {
  part_reduction part({24, 8}, {1, 1, 1}, false, averaging_config{}, 0s);
  part.open({true, true, true}, 0s);
  part.add(0, 0, floats({3, 3}), 0s);
  part.add(0, 2, floats({3, 3}), 0s);
  part.add(1, 0, floats({0, 0}), 0s);
  part.leave_out(0);
  part.add(1, 1, floats({0, 0}), 0s);
  for (std::uint32_t k = 0; k < 2; ++k) part.add(2, k, floats({3, 3}), 0s);
  std::vector<std::vector<std::uint32_t>> senders;
  while (auto done = part.next()) senders.push_back(done->senders);
  CHECK(senders == std::vector<std::vector<std::uint32_t>>{{0, 1, 2}, {1, 2}});
  CHECK(part.add(0, 1, floats({1, 1}), 0s) == part_reduction::taken::too_late);
  part.add(2, 2, floats({3, 3}), 0s);
  part.leave_out(1);
  auto last = part.next();
  REQUIRE(last);
  // The pieces of the first member stay in.
  CHECK(last->senders == std::vector<std::uint32_t>{0, 2});
}

TEST_CASE("the same senders give the same bits in any order of arrival") {
  std::set<std::vector<float>> results;
  std::vector<std::uint32_t> order{0, 1, 2, 3};
  do {
    part_reduction part({8, 8}, {1, 7, 3, 100}, false, averaging_config{}, 0s);
    part.open({true}, 0s);
    for (auto m : order)
      part.add(m, 0, floats({0.1f * static_cast<float>(m + 1), 1e-8f + static_cast<float>(m)}), 0s);
    auto done = part.next();
    REQUIRE(done);
    results.insert({done->values.floats()[0], done->values.floats()[1]});
  } while (std::next_permutation(order.begin(), order.end()));
  CHECK(results.size() == 1);
}

TEST_CASE("pieces that are repeated, not open, or size-only among values are wrong") {
  part_reduction part({16, 8}, {1, 1, 0}, false, averaging_config{}, 0s);
  part.open({true, false}, 0s);
  CHECK(part.add(0, 0, floats({1, 1}), 0s) == part_reduction::taken::yes);
  CHECK(part.add(0, 0, floats({1, 1}), 0s) == part_reduction::taken::wrong);
  CHECK(part.add(0, 1, floats({1, 1}), 0s) == part_reduction::taken::wrong);
  CHECK(part.add(1, 0, payload::size_only(8), 0s) == part_reduction::taken::wrong);
  // This member has weight 0.
  CHECK(part.add(2, 0, floats({1, 1}), 0s) == part_reduction::taken::wrong);
  CHECK(part.add(1, 0, floats({1, 1}), 0s) == part_reduction::taken::yes);
  CHECK(part.add(1, 0, floats({1, 1}), 0s) == part_reduction::taken::wrong);
}

TEST_CASE("a sender of values that are not finite is left out of that chunk and all later ones") {
  part_reduction part({16, 8}, {1, 1}, false, averaging_config{}, 0s);
  part.open({true, true}, 0s);
  part.add(0, 0, floats({1, std::numeric_limits<float>::quiet_NaN()}), 0s);
  part.add(1, 0, floats({1, 1}), 0s);
  part.add(1, 1, floats({2, 2}), 0s);
  auto first = part.next();
  REQUIRE(first);
  CHECK(first->refused.faulty == std::vector<std::uint32_t>{0});
  CHECK(first->senders == std::vector<std::uint32_t>{1});
  auto second = part.next();
  REQUIRE(second);
  CHECK(second->senders == std::vector<std::uint32_t>{1});
}

// -- streaming ------------------------------------------------------------------------------------

TEST_CASE("finished chunks come back while others are still under way") {
  auto options = of(3);
  options.values_per_part = 40;
  round_lab lab(options);
  // Member 0's slice for member 1 stops after four chunks: a window of 2 and two acknowledgements.
  std::uint32_t passed = 0, reduced = 0;
  std::vector<caf::message> late;
  lab.filter = [&](std::uint32_t from, std::uint32_t to, const caf::message& m) {
    if (m.match_elements<reduced_chunk>() && from == 1) ++reduced;
    if (!(from == 0 && to == 1 && m.match_elements<part_chunk>()) || ++passed <= 4) return true;
    late.push_back(m);
    return false;
  };
  lab.start();
  lab.settle();
  // Four chunks went to two members before the rest of the part arrived.
  CHECK(reduced == 2 * 4);
  CHECK(!lab.ended(1));
  // All other chunks have arrived: only member 1 still waits for chunks of member 0.
  lab.pass(lab.sender_timeout());
  lab.settle();
  CHECK(late.size() == 2);
  for (const auto& m : late) lab.inject(0, 1, m);
  lab.settle();
  // No member needs the rest of the slice any more.
  CHECK(late.size() == 2);
  CHECK(lab.outcomes() == "ppp");
  check_fine(lab);
  CHECK(to_string(lab.result(0).reason) == "sender_timeout");
  // Member 0 is in the first four chunks of part 1, and in all chunks of the other parts.
  const auto& parts = lab.result(2).parts;
  REQUIRE(parts.size() == 4);
  CHECK(parts[1].senders == std::vector<std::uint32_t>{0, 1, 2});
  CHECK(parts[1].end - parts[1].begin == 4 * 2);
  CHECK(parts[2].senders == std::vector<std::uint32_t>{1, 2});
}

TEST_CASE("no member waits longer than sender_timeout for a silent sender, and other chunks are "
          "acknowledged meanwhile") {
  auto options = of(4);
  options.values_per_part = 30;
  round_lab lab(options);
  std::uint64_t acknowledged = 0;
  std::vector<std::pair<std::uint32_t, caf::message>> late;
  lab.filter = [&](std::uint32_t from, std::uint32_t to, const caf::message& m) {
    if (m.match_elements<chunk_received>() && m.get_as<chunk_received>(0).reduced == 0 && from != 3)
      ++acknowledged;
    if (from != 3 || !m.match_elements<part_chunk>()) return true;
    late.emplace_back(to, m);
    return false;
  };
  lab.start();
  lab.settle();
  // The slices of members 0, 1 and 2 for each other have 15, 16 and 16 chunks, with two senders
  // each.
  CHECK(acknowledged == 2 * (15 + 16 + 16));
  lab.pass(lab.sender_timeout() - 1ns);
  lab.settle();
  CHECK(lab.outcomes() == "----");
  lab.pass(1ns);
  lab.settle();
  // The round is not over: chunks of member 3 are still behind on its line.
  CHECK(lab.outcomes() == "----");
  for (const auto& [to, m] : late) lab.inject(3, to, m);
  lab.settle();
  CHECK(lab.outcomes() == "pppp");
  check_fine(lab);
}

TEST_CASE(
    "large groups with few chunks send no acknowledgements: parts and votes show what arrived") {
  const auto acknowledgements = [](std::size_t members, std::uint32_t window) {
    auto options = of(members);
    // At most ten chunks; later parts are larger.
    options.values_per_part = 4;
    options.window_chunks = window;
    round_lab lab(options);
    std::uint64_t count = 0;
    lab.filter = [&](std::uint32_t, std::uint32_t, const caf::message& m) {
      if (m.match_elements<chunk_received>()) ++count;
      return true;
    };
    lab.start();
    lab.settle();
    CHECK(lab.outcomes() == std::string(members, 'o'));
    check_fine(lab);
    for (const auto point : {probes::first_part_sent, probes::half_sent, probes::half_replied})
      CHECK(lab.probes[std::string(point)] == members);
    return count;
  };
  CHECK(acknowledgements(17, 20) == 0);
  // The window may fill.
  CHECK(acknowledgements(17, 19) > 0);
  CHECK(acknowledgements(16, 20) > 0);
}

TEST_CASE("a large group without acknowledgements does not wait for a member that dies") {
  auto options = of(20);
  options.window_chunks = 8;
  round_lab lab(options);
  lab.filter = [&](std::uint32_t from, std::uint32_t, const caf::message& m) {
    return from != 3 || !m.match_elements<reduced_chunk>();
  };
  lab.start();
  lab.settle();
  lab.kill(3, true);
  CHECK(lab.run());
  check_fine(lab);
  auto outcomes = lab.outcomes();
  CHECK(std::count(outcomes.begin(), outcomes.end(), 'f') == 0);
}

TEST_CASE("a slow sender is left out at half of round_timeout if most of the weight has arrived") {
  auto options = of(3);
  options.values_per_part = 400;
  round_lab lab(options);
  std::deque<caf::message> slow;
  lab.filter = [&](std::uint32_t from, std::uint32_t to, const caf::message& m) {
    if (from != 0 || to != 1 || !m.match_elements<part_chunk>()) return true;
    slow.push_back(m);
    return false;
  };
  lab.start();
  lab.settle();
  while (lab.now() < lab.round_timeout() / 2) {
    CHECK(!lab.ended(2));
    REQUIRE(!slow.empty());
    lab.inject(0, 1, slow.front());
    slow.pop_front();
    lab.settle();
    lab.pass(lab.sender_timeout() / 2);
  }
  lab.settle();
  for (const auto& m : std::exchange(slow, {})) lab.inject(0, 1, m);
  lab.settle();
  CHECK(slow.empty());
  CHECK(lab.outcomes() == "ppp");
  check_fine(lab);
}

TEST_CASE("any order of arrival gives a complete round with the same bits") {
  for (std::size_t size = 1; size <= 6; ++size) {
    std::set<std::vector<float>> seen;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      auto options = of(size);
      options.shuffle = seed;
      round_lab lab(options);
      lab.start();
      CHECK(lab.run());
      CHECK(lab.outcomes() == std::string(size, 'o'));
      check_fine(lab);
      for (std::uint32_t m = 0; m < size; ++m) CHECK(lab.round(m).idle());
      seen.insert(bits(lab, 0));
    }
    CHECK(seen.size() == 1);
  }
}

// -- lost reducers --------------------------------------------------------------------------------

TEST_CASE("a reducer that dies at once is replaced, and the round continues without its values") {
  for (std::size_t size = 4; size <= 6; ++size) {
    round_lab lab(of(size));
    lab.kill(1, true);
    lab.start();
    CHECK(lab.run());
    CHECK(lab.now() == 0s);
    auto expected = std::string(size, 'p');
    expected[1] = '-';
    CHECK(lab.outcomes() == expected);
    check_fine(lab);
    CHECK(lab.probes.at("all_reduce.part_claimed") == 1);
    for (const auto& part : lab.result(0).parts) CHECK(part.senders.size() == size - 1);
    CHECK(to_string(lab.result(0).reason) == "sender_lost");
  }
}

TEST_CASE("finished chunks of a dead reducer are kept, even if only one member has them") {
  auto options = of(4);
  options.values_per_part = 20;
  round_lab lab(options);
  // Only member 3 receives chunks of part 1, and only its first three chunks.
  std::uint32_t heard = 0;
  lab.filter = [&](std::uint32_t from, std::uint32_t to, const caf::message& m) {
    return from != 1 || !m.match_elements<reduced_chunk>() || (to == 3 && ++heard <= 3);
  };
  lab.start();
  lab.settle();
  lab.kill(1, false);
  CHECK(lab.run());
  CHECK(lab.outcomes() == "p-pp");
  check_fine(lab);
  const auto& parts = lab.result(0).parts;
  REQUIRE(parts.size() == 5);
  CHECK(parts[1].senders.size() == 4);
  CHECK(parts[1].end - parts[1].begin == 3 * 2);
  CHECK(parts[2].senders == std::vector<std::uint32_t>{0, 2, 3});
}

TEST_CASE("a second and a third reducer of the same part may die, too") {
  for (std::uint32_t steps = 0; steps < 400; steps += 7) {
    round_lab lab(of(10));
    lab.start();
    lab.kill(2, true);
    std::uint32_t killed = 0;
    lab.on_probe = [&](std::uint32_t m, std::string_view point) {
      if (point == probes::part_claimed && m != 0 && killed++ < 2) lab.kill(m, false);
    };
    for (std::uint32_t i = 0; i < steps; ++i) lab.step();
    CHECK(lab.run());
    check_fine(lab);
    CHECK(lab.outcomes() == "pp---ppppp");
  }
}

TEST_CASE("the part of a lost member costs each other member its bytes once more, and back") {
  auto options = of(4);
  options.values_per_part = 400;
  options.chunk_bytes = 64;
  round_lab lab(options);
  lab.kill(2, true);
  lab.start();
  CHECK(lab.run());
  std::uint64_t usual = 0;
  for (std::uint32_t p = 0; p < 4; ++p) {
    const auto size = 4 * (lab.group().boundaries[p + 1] - lab.group().boundaries[p]);
    usual += p == 2 ? 0 : size * (2 + 2);
  }
  const auto lost = 4 * (lab.group().boundaries[3] - lab.group().boundaries[2]);
  // Two windows of chunks to and from the dead member were spent. They are smaller than one part.
  CHECK(lab.bytes >= usual + 2 * 2 * lost);
  CHECK(lab.bytes <= usual + 2 * 2 * lost + 6 * 2 * 64);
}

TEST_CASE("an unreachable member gets its result through reachable ones, and loses it with them") {
  lab_options options;
  options.members = {{2}, {3, false}, {4, false}, {5, false}};
  {
    round_lab lab(options);
    lab.start();
    CHECK(lab.run());
    CHECK(lab.outcomes() == "oooo");
    check_fine(lab);
  }
  options.members = {{2}, {3, false}, {4}, {5, false}, {1, false}};
  {
    round_lab lab(options);
    lab.start();
    lab.kill(0, true);
    CHECK(lab.run());
    CHECK(lab.outcomes() == "-pppp");
    check_fine(lab);
  }
  {
    round_lab lab(options);
    lab.start();
    lab.kill(0, true);
    lab.kill(2, true);
    CHECK(lab.run());
    CHECK(lab.outcomes() == "-f-ff");
    check_fine(lab);
    CHECK(to_string(lab.result(1).reason) == "reducer_lost");
  }
}

// -- one result -----------------------------------------------------------------------------------

TEST_CASE("a reducer that is cut off with the only copy of its part never ends with other bits "
          "than the rest") {
  // The reducer holds all parts, and no other member has its part. The three others reduce that
  // part again.
  round_lab lab(of(4));
  lab.filter = [&](std::uint32_t from, std::uint32_t, const caf::message& m) {
    return from != 1 || !(m.match_elements<reduced_chunk>() || m.match_elements<member_ready>());
  };
  lab.start();
  lab.settle();
  CHECK(lab.outcomes() == "----");
  CHECK(lab.probes.at("all_reduce.voted") == 1);
  for (std::uint32_t m : {0, 2, 3}) lab.cut(1, m, true);
  CHECK(lab.run());
  check_fine(lab);
  CHECK(lab.outcomes() == "pfpp");
  CHECK(to_string(lab.result(1).reason) == "no_majority");
}

TEST_CASE("a round fails at once, with its reason, when a majority is impossible") {
  round_lab lab(of(2));
  lab.start();
  lab.kill(1, true);
  CHECK(lab.run());
  CHECK(lab.now() == 0s);
  CHECK(to_string(lab.result(0).reason) == "reducer_lost");
}

TEST_CASE("two members that lose each other both get their parts through a third member") {
  for (std::uint32_t steps = 0; steps < 80; ++steps)
    for (bool now : {true, false}) {
      round_lab lab(of(3));
      lab.start();
      for (std::uint32_t i = 0; i < steps; ++i) lab.step();
      lab.cut(0, 1, now);
      CHECK(lab.run());
      check_fine(lab);
      CHECK(lab.outcomes().find('f') == std::string::npos);
    }
}

// -- bad messages ---------------------------------------------------------------------------------
// The leader sends all weights as integers with the group, so no message can carry NaN or a
// negative weight. A reduced chunk is refused if its weight is not the sum of its senders' weights.
// The group actor drops messages of other rounds without counting them. Correct members of such a
// round may not know yet that this peer is not in it.

namespace {

struct bad_message {
  const char* what;
  std::function<caf::message(const round_lab&)> make; ///< from member 3 to member 0
};

payload zeros(std::size_t count) {
  return payload{std::vector<float>(count)};
}

/// Groups of four with two-value chunks; part 0 has six values.
std::vector<bad_message> bad_messages() {
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  auto g = [](const round_lab& lab) { return lab.group().group; };
  return {
      {"a chunk of a part that there is not",
       [=](auto& l) {
         return caf::make_message(part_chunk{g(l), 3, 4, 0, zeros(2)});
       }},
      {"a chunk of somebody else's part",
       [=](auto& l) {
         return caf::make_message(part_chunk{g(l), 3, 1, 0, zeros(2)});
       }},
      {"a chunk of another size",
       [=](auto& l) {
         return caf::make_message(part_chunk{g(l), 3, 0, 0, zeros(3)});
       }},
      {"a chunk that was cut short",
       [=](auto& l) {
         return caf::make_message(part_chunk{g(l), 3, 0, 0, payload{std::vector<std::byte>(7)}});
       }},
      {"an empty chunk",
       [=](auto& l) {
         return caf::make_message(part_chunk{g(l), 3, 0, 0, {}});
       }},
      {"a chunk between chunks",
       [=](auto& l) {
         return caf::make_message(part_chunk{g(l), 3, 0, 4, zeros(2)});
       }},
      {"a chunk behind the part",
       [=](auto& l) {
         return caf::make_message(part_chunk{g(l), 3, 0, ~std::uint64_t{7}, zeros(2)});
       }},
      {"a chunk without values",
       [=](auto& l) {
         return caf::make_message(part_chunk{g(l), 3, 0, 0, payload::size_only(8)});
       }},
      {"a reduced chunk of part 2",
       [=](auto& l) {
         return caf::make_message(reduced_chunk{g(l), 2, 0, 2, {0}, zeros(2)});
       }},
      {"a reduced chunk of our own part",
       [=](auto& l) {
         return caf::make_message(reduced_chunk{g(l), 0, 0, 2, {0}, zeros(2)});
       }},
      {"a reduced chunk of a part that there is not",
       [=](auto& l) {
         return caf::make_message(reduced_chunk{g(l), 9, 0, 2, {0}, zeros(2)});
       }},
      {"a reduced chunk of another size",
       [=](auto& l) {
         return caf::make_message(reduced_chunk{g(l), 3, 0, 2, {0}, zeros(1)});
       }},
      {"a reduced chunk of a strange weight",
       [=](auto& l) {
         return caf::make_message(reduced_chunk{g(l), 3, 0, 3, {0}, zeros(2)});
       }},
      {"a reduced chunk of the weight -1",
       [=](auto& l) {
         return caf::make_message(reduced_chunk{g(l), 3, 0, ~std::uint64_t{0}, {0}, zeros(2)});
       }},
      {"a reduced chunk of nobody",
       [=](auto& l) {
         return caf::make_message(reduced_chunk{g(l), 3, 0, 0, {}, zeros(2)});
       }},
      {"a reduced chunk of strangers",
       [=](auto& l) {
         return caf::make_message(reduced_chunk{g(l), 3, 0, 2, {7}, zeros(2)});
       }},
      {"a reduced chunk of the same member twice",
       [=](auto& l) {
         return caf::make_message(reduced_chunk{g(l), 3, 0, 4, {0, 0}, zeros(2)});
       }},
      {"a reduced chunk of NaN",
       [=](auto& l) {
         return caf::make_message(
             reduced_chunk{g(l), 3, 0, 2, {0}, payload{std::vector<float>{0, nan}}});
       }},
      {"an acknowledgement of nothing",
       [=](auto& l) {
         return caf::make_message(chunk_received{g(l), 3, 9, 1});
       }},
      {"a query for a part that there is not",
       [=](auto& l) {
         return caf::make_message(part_query{g(l), 3, 4, {}});
       }},
      {"a query for its own part",
       [=](auto& l) {
         return caf::make_message(part_query{g(l), 3, 3, {}});
       }},
      {"a query with chunks that there are not",
       [=](auto& l) {
         return caf::make_message(part_query{g(l), 3, 1, {{0, 5}}});
       }},
      {"a query with more chunks than numbers",
       [=](auto& l) {
         return caf::make_message(part_query{g(l), 3, 1, {{1, ~0u}}});
       }},
      {"a claim of our own part",
       [=](auto& l) {
         return caf::make_message(part_claim{g(l), 3, 0});
       }},
      {"an answer that nobody asked for",
       [=](auto& l) {
         return caf::make_message(part_answer{g(l), 3, 1});
       }},
      {"an order for our slice",
       [=](auto& l) {
         return caf::make_message(part_wanted{g(l), 3, 1, 0, {{0, 1}}});
       }},
      {"an order for chunks that we have not",
       [=](auto& l) {
         return caf::make_message(part_wanted{g(l), 3, 2, 1, {{0, 1}}});
       }},
      {"an order for chunks in disorder",
       [=](auto& l) {
         return caf::make_message(part_wanted{g(l), 3, 3, 0, {{1, 1}, {0, 1}}});
       }},
  };
}

} // namespace

TEST_CASE(
    "each bad message is counted, its sender is left out of the round, and the others succeed") {
  for (const auto& bad : bad_messages()) {
    CAPTURE(std::string(bad.what));
    round_lab lab(of(4));
    // Member 3 sends nothing else, so a message that is not counted now is never counted.
    lab.filter = [](std::uint32_t from, std::uint32_t, const caf::message&) { return from != 3; };
    lab.start();
    lab.inject(3, 0, bad.make(lab));
    lab.inject(3, 0, bad.make(lab));
    while (lab.suspicions.empty() && lab.step()) {
    }
    REQUIRE(lab.suspicions.size() == 1);
    CHECK(lab.suspicions[0].starts_with("0 says of peer 103"));
    lab.settle();
    // The member is banned.
    CHECK(lab.suspicions.size() == 1);
    lab.kill(3, false);
    CHECK(lab.run());
    for (std::uint32_t m = 0; m < 3; ++m) CHECK(lab.result(m).outcome == outcome::partial);
    lab.suspicions.clear();
    check_fine(lab);
  }
}

TEST_CASE("a part that arrives twice is counted and its sender banned") {
  round_lab lab(of(4));
  std::vector<caf::message> twice;
  lab.filter = [&](std::uint32_t from, std::uint32_t to, const caf::message& m) {
    if (from == 3 && to == 0 && m.match_elements<part_chunk>() && twice.empty()) twice.push_back(m);
    // Keeps part 0 open for a while.
    return from != 2 || !m.match_elements<part_chunk>();
  };
  lab.start();
  lab.settle();
  REQUIRE(twice.size() == 1);
  CHECK(lab.suspicions.empty());
  lab.inject(3, 0, twice[0]);
  lab.settle();
  REQUIRE(
      // The part is acknowledged twice as well, which member 3 reports.
      !lab.suspicions.empty());
  CHECK(lab.suspicions[0] == "0 says of peer 103: part chunk that nobody asked for");
}

TEST_CASE("messages of strangers and with false names are counted and change nothing") {
  round_lab lab(of(4));
  lab.start();
  std::size_t count = 0;
  for (const auto& bad : bad_messages()) {
    lab.inject_by_stranger(0, bad.make(lab));
    CHECK(lab.suspicions.size() == ++count);
    // In member 3's name, if the message has a name. Member 2 does reduce part 2, so its lie about
    // the part is none of these.
    if (std::string_view(bad.what) != "a reduced chunk of part 2") lab.inject(2, 0, bad.make(lab));
  }
  lab.inject_by_stranger(0, caf::make_message(member_ready{lab.group().group, 1, {}, {}}));
  lab.inject_by_stranger(0, caf::make_message(member_finished{lab.group().group, 1, 0, {}}));
  lab.inject_by_stranger(0, caf::make_message(member_declined{lab.group().group, 1, {}}));
  CHECK(lab.suspicions.size() == count + 3);
  lab.suspicions.clear();
  lab.kill(2, false);
  CHECK(lab.run());
  for (std::uint32_t m : {0, 1, 3}) CHECK(lab.result(m).succeeded());
}

TEST_CASE("two votes of one member are counted, and a single false vote decides nothing") {
  round_lab lab(of(4));
  lab.start();
  for (const id128 version : {id128{1, 1}, id128{1, 2}})
    lab.inject(3, 0,
               caf::make_message(
                   member_ready{lab.group().group, 3, version,
                                lab.host(3).sign(vote_statement(lab.group().group, version))}));
  CHECK(lab.run());
  REQUIRE(lab.suspicions.size() == 1);
  CHECK(lab.suspicions[0].find("contradict") != std::string::npos);
  lab.suspicions.clear();
  check_fine(lab);
}

// -- lies -----------------------------------------------------------------------------------------

TEST_CASE("a lie that the round is over neither fails nor splits it") {
  for (const std::uint32_t told : {7u, 3u}) {
    CAPTURE(told);
    round_lab lab(of(8));
    lab.start();
    // Word of another version, and of nothing, before anybody has voted.
    for (std::uint32_t to = 1; to <= told; ++to)
      lab.inject(0, to, caf::make_message(member_finished{lab.group().group, 0, 0, {7, 7}}));
    CHECK(lab.run());
    CHECK(lab.outcomes() == std::string(8, 'o'));
    check_fine(lab);
  }
}

TEST_CASE("a member does not end with its own version on one member's word") {
  round_lab lab(of(4));
  // Votes do not arrive at member 1. It hears only that member 0 is done.
  lab.filter = [&](std::uint32_t, std::uint32_t to, const caf::message& m) {
    return to != 1 || !(m.match_elements<member_ready>() || m.match_elements<member_finished>() ||
                        m.match_elements<certificate_given>());
  };
  lab.start();
  lab.settle();
  CHECK(lab.outcomes() == "o-oo");
  lab.inject(0, 1,
             caf::make_message(member_finished{lab.group().group, 0, 0, lab.round(1).version()}));
  lab.settle();
  CHECK_FALSE(lab.ended(1));
  // With the certificate it does.
  lab.filter = nullptr;
  lab.pass(lab.sender_timeout() / 4);
  lab.inject(2, 1,
             caf::make_message(member_finished{lab.group().group, 2, 0, lab.round(1).version()}));
  lab.settle();
  lab.pass(lab.sender_timeout() / 4);
  lab.settle();
  CHECK(lab.outcomes() == "oooo");
  check_fine(lab);
}

TEST_CASE("a member that gets other values from a reducer does not end with them") {
  for (std::size_t size : {4u, 8u}) {
    round_lab lab(of(size));
    lab.filter = [&](std::uint32_t from, std::uint32_t to, const caf::message& m) {
      if (from != 3 || to != 0 || !m.match_elements<reduced_chunk>()) return true;
      auto other = m.get_as<reduced_chunk>(0);
      other.data = payload{std::vector<float>(other.data.size() / 4, 12345.0f)};
      lab.inject(from, to, caf::make_message(other));
      return false;
    };
    lab.start();
    CHECK(lab.run());
    auto expected = std::string(size, 'o');
    expected[0] = 'f';
    CHECK(lab.outcomes() == expected);
    CHECK(to_string(lab.result(0).reason) == "no_majority");
    CHECK(lab.suspicions.empty());
  }
}

TEST_CASE("members without a majority name the reducer that told each of them something else") {
  for (const bool framed : {false, true}) {
    lab_options options;
    options.members.resize(5);
    round_lab lab(options);
    lab.filter = [&](std::uint32_t from, std::uint32_t to, const caf::message& content) {
      if (from == 0 && content.match_elements<reduced_chunk>()) {
        auto lie = content.get_as<reduced_chunk>(0);
        const auto floats = lie.data.floats();
        std::vector<float> others(floats.begin(), floats.end());
        others[0] += static_cast<float>(to);
        lie.data = payload{std::move(others)};
        lab.inject(from, to, caf::make_message(std::move(lie)));
        return false;
      }
      if (framed && from == 4 && content.match_elements<part_versions>()) {
        auto lie = content.get_as<part_versions>(0);
        ++lie.versions[1].low;
        lab.inject(from, to, caf::make_message(std::move(lie)));
        return false;
      }
      return true;
    };
    lab.start();
    REQUIRE(lab.run());
    for (std::uint32_t m = 1; m < lab.size(); ++m) {
      CHECK(lab.result(m).reason == reason::no_majority);
      CHECK(lab.result(m).bad_reducers == std::set{member_of(lab.host(0).key())});
    }
  }
}

TEST_CASE(
    "versions of parts are taken once from each member, and only as many as there are parts") {
  lab_options options;
  options.members.resize(4);
  for (const std::size_t count : {4, 3, 0}) {
    round_lab lab(options);
    lab.start();
    const auto told = [&] {
      lab.inject(1, 0,
                 caf::make_message(part_versions{lab.group().group, 1, std::vector<id128>(count)}));
      lab.settle();
      return lab.suspicions.size();
    };
    CHECK(told() == (count == 4 ? 0 : 1));
    if (count == 4) CHECK(told() == 1);
    REQUIRE(lab.run());
  }
}

TEST_CASE("a reducer that leaves out the values that it acknowledged does not get its way, and is "
          "named") {
  round_lab lab(of(8));
  lab.filter = [&](std::uint32_t from, std::uint32_t to, const caf::message& m) {
    if (from != 3 || !m.match_elements<reduced_chunk>()) return true;
    auto other = m.get_as<reduced_chunk>(0);
    other.senders = {3};
    other.weight = lab.group().members[3].weight;
    other.data = payload{std::vector<float>(other.data.size() / 4, -777.0f)};
    lab.inject(from, to, caf::make_message(other));
    return false;
  };
  lab.start();
  CHECK(lab.run());
  CHECK(lab.outcomes() == std::string(8, 'f'));
  CHECK(lab.suspicions.size() >= 7);
  for (const auto& text : lab.suspicions) CHECK(text.find("says of peer 103") != std::string::npos);
}

TEST_CASE("a part that lacks one member's values gets that member's vote only if they came late") {
  for (const bool late : {false, true}) {
    CAPTURE(late);
    round_lab lab(of(4));
    std::vector<caf::message> kept;
    lab.filter = [&](std::uint32_t from, std::uint32_t to, const caf::message& m) {
      if (late && from == 0 && to == 3 && m.match_elements<part_chunk>()) {
        kept.push_back(m);
        return false;
      }
      if (late || from != 3 || !m.match_elements<reduced_chunk>()) return true;
      auto other = m.get_as<reduced_chunk>(0);
      std::erase(other.senders, 0u);
      other.weight -= lab.group().members[0].weight;
      lab.inject(from, to, caf::make_message(other));
      return false;
    };
    lab.start();
    lab.settle();
    if (late) lab.pass(lab.sender_timeout());
    for (const auto& m : kept) lab.inject(0, 3, m);
    CHECK(lab.run());
    CHECK(lab.result(0).succeeded() == late);
    CHECK(lab.suspicions.empty() == late);
  }
}

TEST_CASE("a vote, a decline and a certificate count only with the members' signatures") {
  const auto try_with = [](const std::function<caf::message(round_lab&)>& make) {
    round_lab lab(of(4));
    lab.start();
    lab.inject(3, 0, make(lab));
    lab.settle();
    return lab.suspicions;
  };
  const auto group = [](round_lab& lab) { return lab.group().group; };
  const id128 version{4, 2};
  CHECK(try_with([&](round_lab& lab) {
          return caf::make_message(member_ready{group(lab), 3, version, {}});
        }).size() == 1);
  CHECK(try_with([&](round_lab& lab) {
          return caf::make_message(member_declined{group(lab), 3, {}});
        }).size() == 1);
  CHECK(try_with([&](round_lab& lab) {
          // Another member's signature.
          return caf::make_message(
              member_declined{group(lab), 3, lab.host(2).sign(decline_statement(group(lab)))});
        }).size() == 1);
  CHECK(try_with([&](round_lab& lab) {
          return caf::make_message(certificate_given{group(lab), 3, version, {}, {}});
        }).size() == 1);
  round_lab lab(of(4));
  for (std::uint32_t to = 0; to < 3; ++to)
    lab.inject(3, to,
               caf::make_message(member_declined{group(lab), 3,
                                                 lab.host(3).sign(decline_statement(group(lab)))}));
  lab.start();
  lab.kill(3, false);
  CHECK(lab.run());
  CHECK(lab.suspicions.empty());
  CHECK(lab.outcomes() == "ppp-");
  // The decline is in the certificate, so that three votes are more than two thirds of three.
  CHECK(lab.result(0).certificate->declines.size() == 1);
}

TEST_CASE("a false certificate is refused, and its sender is named") {
  const auto outcome_of = [](const std::function<void(round_lab&, certificate_given&)>& change) {
    round_lab lab(of(4));
    // Member 1 gets no votes but asks member 0, which answers with another certificate.
    lab.filter = [&](std::uint32_t from, std::uint32_t to, const caf::message& m) {
      if (to != 1) return true;
      if (m.match_elements<member_ready>()) return false;
      if (m.match_elements<member_finished>()) return from == 0;
      if (from != 0 || !m.match_elements<certificate_given>()) return true;
      auto other = m.get_as<certificate_given>(0);
      change(lab, other);
      lab.inject(from, to, caf::make_message(other));
      return false;
    };
    lab.start();
    lab.settle();
    lab.pass(lab.sender_timeout() / 4);
    lab.settle();
    return std::pair{lab.ended(1) && lab.result(1).succeeded(), lab.suspicions.size()};
  };
  CHECK(outcome_of([](auto&, auto&) {}) == std::pair{true, std::size_t{0}});
  CHECK(outcome_of([](auto&, auto& m) { m.version.low ^= 1; }) == std::pair{false, std::size_t{1}});
  CHECK(outcome_of([](auto&, auto& m) { m.votes.pop_back(); }) == std::pair{true, std::size_t{0}});
  CHECK(outcome_of([](auto&, auto& m) { m.votes.resize(1); }) == std::pair{false, std::size_t{1}});
  CHECK(outcome_of([](auto&, auto& m) { m.votes[0].member ^= 2; }) ==
        std::pair{false, std::size_t{1}});
  CHECK(outcome_of([](auto&, auto& m) { m.votes.assign(300, m.votes[0]); }) ==
        std::pair{false, std::size_t{1}});
  CHECK(outcome_of([](auto& lab, auto& m) {
          // A majority of false declines.
          m.votes.resize(1);
          for (std::uint32_t d = 1; d < 4; ++d) m.declines.push_back({d, lab.host(0).sign({})});
        }) == std::pair{false, std::size_t{1}});
}

TEST_CASE("a vote and a decline of one member are a proof against it") {
  round_lab lab(of(4));
  lab.start();
  const auto group = lab.group().group;
  const id128 version{4, 2};
  lab.inject(3, 0,
             caf::make_message(member_ready{group, 3, version,
                                            lab.host(3).sign(vote_statement(group, version))}));
  lab.inject(
      3, 0,
      caf::make_message(member_declined{group, 3, lab.host(3).sign(decline_statement(group))}));
  CHECK(lab.run());
  REQUIRE(!lab.suspicions.empty());
  CHECK(lab.suspicions[0] ==
        "0 says of peer 103: two signed statements that contradict each other");
}

TEST_CASE("values that would be all of the mean are refused, and impossible ones are suspicious") {
  using list = std::vector<std::uint32_t>;
  struct seen {
    list outliers, faulty;
    bool operator==(const seen&) const = default;
  };
  const auto reduce = [](std::vector<float> values, double ratio) {
    averaging_config how;
    how.max_norm_ratio = ratio;
    part_reduction part({8, 8}, std::vector<std::uint64_t>(values.size(), 1), false, how, 0s);
    part.open({true}, 0s);
    for (std::uint32_t m = 0; m < values.size(); ++m)
      part.add(m, 0, floats({values[m], values[m]}), 0s);
    const auto refused = part.next()->refused;
    return seen{refused.outliers, refused.faulty};
  };
  CHECK(reduce({1, 2, 1999}, 1000) == seen{});
  // The gradient of an honest host may have exploded.
  CHECK(reduce({1, 2, 2001}, 1000) == seen{{2}, {}});
  CHECK(reduce({1, 2, 2001}, 0) == seen{});
  CHECK(reduce({1, 2001}, 1000) == seen{}); // who of two is wrong?
  CHECK(reduce({1, 1e18f}, 1000) == seen{{}, {1}});
  CHECK(reduce({1, 2, 1e18f}, 1000) == seen{{}, {2}});
  CHECK(reduce({0, 0, 5}, 1000) == seen{}); // a chunk that most batches do not touch
  // Small values do not have the others refused, unless they are the majority.
  CHECK(reduce({1e-6f, 1e-6f, 1, 1}, 1000) == seen{});
  CHECK(reduce({1, 1, 1e30f, 1e30f}, 1000) == seen{{}, {2, 3}});
}

TEST_CASE("the few values at the end of a part are measured by the values before them") {
  const auto refused_at_the_end = [](float last) {
    averaging_config how;
    part_reduction part({20, 16}, {1, 1, 1}, false, how, 0s);
    part.open({true, true}, 0s);
    for (std::uint32_t m = 0; m < 3; ++m) {
      part.add(m, 0, floats({1, 1, 1, 1}), 0s);
      // The gradient of a bias that is zero but for rounding.
      part.add(m, 1, floats({m == 2 ? last : 1e-8f}), 0s);
    }
    const auto first = part.next()->refused;
    CHECK((first.faulty.empty() && first.outliers.empty()));
    const auto end = part.next()->refused;
    CHECK(end.faulty.empty());
    return end.outliers;
  };
  using list = std::vector<std::uint32_t>;
  CHECK(refused_at_the_end(1e-4f) == list{});
  CHECK(refused_at_the_end(999) == list{});
  CHECK(refused_at_the_end(1001) == list{2});
}

TEST_CASE("a piece with values that look too large waits for the rest of the part") {
  const auto refused = [](std::vector<float> others_after) {
    averaging_config how;
    part_reduction part({16, 8}, {1, 1, 1}, false, how, 0s);
    part.open({true, true}, 0s);
    // Rows of a table that only the batch of member 2 touches.
    for (std::uint32_t m = 0; m < 3; ++m) {
      const float value = m == 2 ? 1.0f : 1e-8f;
      part.add(m, 0, floats({value, value}), 0s);
    }
    CHECK_FALSE(part.next());
    for (std::uint32_t m = 0; m < 3; ++m)
      part.add(m, 1, floats({others_after[m], others_after[m]}), 0s);
    const auto later = part.next();
    REQUIRE(later);
    CHECK(later->chunk == 1);
    CHECK(later->refused.outliers.empty());
    const auto doubtful = part.next();
    REQUIRE(doubtful);
    CHECK(doubtful->chunk == 0);
    CHECK_FALSE(part.next());
    return doubtful->refused.outliers;
  };
  using list = std::vector<std::uint32_t>;
  CHECK(refused({1, 1, 1}) == list{});
  CHECK(refused({1e-8f, 1e-8f, 1e-8f}) == list{2});
}

TEST_CASE("a reducer that leaves out values that are too large is not taken for a censor") {
  auto options = of(5);
  options.chunk_bytes = 64; // a part is one piece
  options.change = [](std::uint32_t member, std::vector<float>& values) {
    if (member != 3) return;
    for (auto& x : values) x *= 1e6f;
  };
  round_lab lab(options);
  lab.start();
  CHECK(lab.run());
  CHECK(lab.suspicions.empty());
  // Each reducer leaves member 3 out, and its own part, too.
  CHECK(lab.outcomes() == "ppppp");
  for (std::uint32_t m = 0; m < 5; ++m) {
    CAPTURE(m);
    for (const auto& part : lab.result(m).parts)
      CHECK(part.senders == std::vector<std::uint32_t>{0, 1, 2, 4});
  }
}

TEST_CASE("a member that always sends garbage stops no other member, and the others succeed") {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    auto random = stream(seed, "garbage");
    auto options = of(3 + random.below(3));
    round_lab lab(options);
    const auto bad = lab.size() - 1;
    auto small = [&] {
      return static_cast<std::uint32_t>(random.below(8) == 0 ? random.next() : random.below(6));
    };
    auto some_payload = [&] {
      const auto kind = random.below(4);
      return kind == 0   ? payload::size_only(4 * random.below(4))
             : kind == 1 ? payload{std::vector<std::byte>(random.below(12))}
                         : zeros(2);
    };
    auto ranges = [&] {
      std::vector<chunk_range> out(random.below(3));
      for (auto& range : out) {
        range.first = small();
        range.count = small();
      }
      return out;
    };
    auto garbage = [&]() -> caf::message {
      const auto group = lab.group().group;
      const auto kind = random.below(10);
      const auto a = random.below(2) == 0 ? bad : small(), b = small(), c = small();
      switch (kind) {
      case 0:
        return caf::make_message(part_chunk{group, a, b, 4 * std::uint64_t{c}, some_payload()});
      case 1:
        return caf::make_message(
            reduced_chunk{group, a, 4 * std::uint64_t{c}, b, {b, c}, some_payload()});
      case 2:
        return caf::make_message(chunk_received{group, a, b, static_cast<std::uint8_t>(c)});
      case 3:
        return caf::make_message(part_query{group, a, b, ranges()});
      case 4:
        return caf::make_message(part_claim{group, a, b});
      case 5:
        return caf::make_message(part_answer{group, a, b});
      case 6:
        return caf::make_message(part_wanted{group, a, b, static_cast<std::uint8_t>(c), ranges()});
      case 7:
        return caf::make_message(member_ready{group, a, id128{b, c}, {}});
      case 8:
        return caf::make_message(
            member_finished{group, a, static_cast<std::uint8_t>(c % 2), id128{b, c}});
      default:
        return caf::make_message(member_declined{group, a, {}});
      }
    };
    lab.start();
    for (int i = 0; i < 60; ++i) {
      lab.inject(bad, static_cast<std::uint32_t>(random.below(bad)), garbage());
      if (random.below(10) == 0)
        lab.inject_by_stranger(static_cast<std::uint32_t>(random.below(bad)), garbage());
      for (auto steps = random.below(4); steps > 0; --steps) lab.step();
    }
    lab.kill(bad, random.below(2) == 0);
    CHECK(lab.run());
  }
}

TEST_CASE("with top_k all members hold the mean of the sent values, in fewer bytes, and each knows "
          "what it sent") {
  lab_options plain{.members = {{1}, {2}, {3}}, .values_per_part = 20, .chunk_bytes = 40};
  auto all = plain, few = plain;
  all.codec = few.codec = kernels::codec::top_k;
  all.top_k_fraction = 1;
  few.top_k_fraction = 0.1;
  std::map<std::string, payload> mean;
  std::map<std::string, std::uint64_t> bytes;
  for (const auto& [name, options] : {std::pair{"plain", plain}, {"all", all}, {"few", few}}) {
    round_lab l(options);
    l.start();
    REQUIRE(l.run());
    for (const auto& error : l.errors()) FAIL_CHECK(name << ": " << error);
    CHECK(l.outcomes() == "ooo");
    mean[name] = l.result(0).values;
    bytes[name] = l.bytes;
    for (std::uint32_t m = 0; m < 3; ++m)
      CHECK(l.result(m).given.same_memory(l.round(m).contribution()));
    const auto given = l.round(1).contribution().floats();
    const auto kept =
        std::count_if(given.begin(), given.end(), [](float value) { return value != 0; });
    CHECK(kept == (std::string(name) == "few"
                       ? 8
                       // One value of each chunk of ten, and of each shorter chunk.
                       : 63));
  }
  // A share of 1 changes no bit.
  CHECK(std::ranges::equal(mean["all"].bytes(), mean["plain"].bytes()));
  CHECK(bytes["few"] < bytes["plain"] * 7 / 10);
}

TEST_CASE("members may use different fractions of top_k, and bytes that are no list of places and "
          "values are refused") {
  lab_options options{.members = {{1}, {1}}, .values_per_part = 20, .chunk_bytes = 80};
  options.codec = kernels::codec::top_k;
  round_lab l(options);
  std::uint64_t told = 0;
  l.filter = [&](std::uint32_t from, std::uint32_t to, const caf::message& content) {
    if (from != 1 || told++ > 0 || !content.match_elements<part_chunk>()) return true;
    auto other = content.get_as<part_chunk>(0);
    const kernels::vector_codec one(kernels::codec::top_k, {}, 0.01);
    other.data = payload{*one.encode(0, std::vector<float>(20, 3))};
    l.inject(from, to, caf::make_message(other));
    return false;
  };
  l.start();
  REQUIRE(l.run());
  CHECK(told > 0);
  CHECK(l.suspicions.empty());
  CHECK(l.outcomes() == "oo");

  round_lab bad(options);
  bad.start();
  bad.inject(1, 0,
             caf::make_message(
                 part_chunk{bad.group().group, 1, 0, 0, payload{std::vector<float>{1, 2, 3}}}));
  bad.run();
  REQUIRE(bad.suspicions.size() == 1);
  CHECK(bad.suspicions.front().find("part chunk that does not fit its part") != std::string::npos);
}

TEST_CASE("a result says how long each reducer's line is busy with the round, as in the plan") {
  // Each line is the slowest once. The last member only reduces.
  for (const bool up : {true, false})
    for (std::size_t slowest = 0; slowest < 5; ++slowest) {
      auto options = of(5);
      options.members[4] = {0, true, false};
      std::vector<kernels::averaging_peer> peers;
      for (std::size_t m = 0; m < 5; ++m) {
        auto& one = options.members[m];
        one.rate_up = one.rate_down = 100'000;
        if (m == slowest) (up ? one.rate_up : one.rate_down) = 1'000;
        peers.push_back({static_cast<double>(one.rate_up), static_cast<double>(one.rate_down),
                         one.weight > 0, one.takes});
      }
      round_lab lab(options);
      lab.start();
      REQUIRE(lab.run());
      const auto& cuts = lab.group().boundaries;
      std::vector<double> shares;
      for (std::size_t m = 0; m < 5; ++m)
        shares.push_back(static_cast<double>(cuts[m + 1] - cuts[m]) / static_cast<double>(cuts[5]));
      const auto planned =
          kernels::seconds_per_bit(peers, {}, shares) * 32 * static_cast<double>(cuts[5]);
      const auto& lines = lab.result(1).line_times;
      REQUIRE(lines.size() == 5);
      const auto longest = std::max_element(lines.begin(), lines.end());
      CHECK(static_cast<std::size_t>(longest - lines.begin()) == slowest);
      CHECK(to_seconds(*longest) == doctest::Approx(planned));
    }
}
