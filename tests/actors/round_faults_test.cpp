// Enumerates every fault at every state of a round. In groups of 2 to 5, each member is killed, and
// each pair loses each other, after each delivered message. All survivors end with an outcome and a
// reason. All successful members have one result, and no member is suspected.
#include "actors/probes.hpp"
#include "tests/actors/support/round_lab.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <iterator>
#include <map>
#include <set>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;

namespace {

struct tally {
  std::map<std::string, std::uint64_t> outcomes; ///< rounds by the outcomes of their survivors
  std::set<std::string> reasons;
  std::uint64_t runs = 0, delivered = 0;
};

/// The result of the surviving members, as round_book judges it.
std::string judged(const round_lab& lab) {
  bool completed = false, failed = false, partial = false;
  for (std::uint32_t m = 0; m < lab.size(); ++m) {
    if (!lab.alive(m) || !lab.ended(m) || lab.group().members[m].takes == 0) continue;
    const auto& result = lab.result(m);
    (result.succeeded() ? completed : failed) = true;
    partial = partial || result.outcome == outcome::partial;
  }
  if (completed && failed) return "split";
  return failed ? "failed" : partial ? "partial" : "ok";
}

enum class shape { equal, unreachable, auxiliary, dropping };
constexpr shape all_shapes[] = {shape::equal, shape::unreachable, shape::auxiliary,
                                shape::dropping};

lab_options group_of(std::uint32_t size, shape which = shape::equal) {
  lab_options out;
  // Two or three chunks.
  out.values_per_part = 3;
  for (std::uint32_t m = 0; m < size; ++m) out.members.push_back({m + 1});
  if (which == shape::unreachable) {
    out.members.back().reachable = false;
    // A joiner that only wants the result.
    out.members.front().weight = 0;
  }
  if (which == shape::auxiliary) {
    out.members.front() = {.weight = 0, .takes = false};
    // A second pass of this codec changes values.
    out.codec = kernels::codec::blockwise8;
  }
  if (which == shape::dropping) out.codec = kernels::codec::top_k;
  return out;
}

/// One round with `strike` after `at` deliveries. False if the round was over before.
template <class Strike>
bool strike_at(tally& into, const lab_options& options, std::uint64_t at, const std::string& what,
               Strike strike) {
  round_lab lab(options);
  lab.start();
  for (std::uint64_t i = 0; i < at; ++i)
    if (!lab.step()) return false;
  strike(lab);
  const bool all_ended = lab.run();
  if (!all_ended)
    FAIL_CHECK(what << " after " << at << " messages: some never end: " << lab.outcomes());
  for (const auto& error : lab.errors())
    FAIL_CHECK(what << " after " << at << " messages: " << error << " (" << lab.outcomes() << ")");
  for (std::uint32_t m = 0; m < lab.size(); ++m) {
    if (!lab.alive(m)) continue;
    if (lab.ended(m)) into.reasons.emplace(to_string(lab.result(m).reason));
    if (!lab.round(m).idle())
      FAIL_CHECK(what << " after " << at << " messages: member " << m << " stays for ever");
  }
  ++into.outcomes[judged(lab)];
  ++into.runs;
  into.delivered += lab.delivered;
  return true;
}

template <class Strike>
void strike_everywhere(tally& into, const lab_options& options, const std::string& what,
                       Strike strike) {
  for (std::uint64_t at = 0; strike_at(into, options, at, what, strike); ++at) {
  }
}

void report(const std::string& what, const tally& t) {
  std::string text;
  for (const auto& [name, count] : t.outcomes) text += fmt::format(", {} {}", name, count);
  MESSAGE(what << ": " << t.runs << " rounds, " << t.delivered << " messages" << text);
}

} // namespace

TEST_CASE("a round survives the death of each member at each state, in groups of two to five") {
  tally t;
  for (std::uint32_t size = 2; size <= 5; ++size)
    for (const shape which : all_shapes)
      for (std::uint32_t who = 0; who < size; ++who)
        for (bool lost : {false, true})
          strike_everywhere(
              t, group_of(size, which),
              fmt::format("{} of {} killed{}", who, size, lost ? " with all under way" : ""),
              [&](round_lab& lab) { lab.kill(who, lost); });
  report("kills", t);
  CHECK(t.outcomes["ok"] > 0);
  CHECK(t.outcomes["partial"] > 0);
  CHECK(t.reasons.contains("sender_lost"));
  CHECK(t.reasons.contains("reducer_lost"));
}

TEST_CASE(
    "a round survives that each pair loses each other at each state, in groups of two to five") {
  tally t;
  for (std::uint32_t size = 2; size <= 5; ++size)
    for (const shape which : all_shapes)
      for (std::uint32_t a = 0; a < size; ++a)
        for (std::uint32_t b = a + 1; b < size; ++b)
          for (bool now : {false, true})
            strike_everywhere(t, group_of(size, which),
                              fmt::format("{} and {} of {} cut, noticed {}", a, b, size,
                                          now ? "at once" : "late"),
                              [&](round_lab& lab) { lab.cut(a, b, now); });
  report("cut pairs", t);
  CHECK(t.outcomes["ok"] > 0);
  CHECK(t.outcomes["partial"] > 0);
}

TEST_CASE("a member that is cut off at any state never ends with another result") {
  tally t;
  for (std::uint32_t size = 3; size <= 5; ++size)
    for (std::uint32_t who = 0; who < size; ++who)
      for (bool now : {false, true})
        strike_everywhere(t, group_of(size), fmt::format("{} of {} cut off", who, size),
                          [&](round_lab& lab) {
                            for (std::uint32_t m = 0; m < size; ++m)
                              if (m != who) lab.cut(who, m, now);
                          });
  report("cut off", t);
  CHECK(t.outcomes["split"] > 0);
  CHECK(t.outcomes["ok"] > 0);
}

TEST_CASE("the check finds two results where members are content with their own vote") {
  std::uint64_t found = 0;
  auto options = group_of(4);
  options.conduct = "lone_vote";
  for (std::uint64_t at = 0; at < 300; ++at) {
    round_lab lab(options);
    lab.start();
    for (std::uint64_t i = 0; i < at; ++i) lab.step();
    for (std::uint32_t m : {0, 2, 3}) lab.cut(1, m, true);
    lab.run();
    for (const auto& error : lab.errors()) found += error.find("other bits") != std::string::npos;
  }
  CHECK(found > 0);
}

TEST_CASE("a round of four survives the death of a member and a lost pair at each state") {
  tally t;
  for (std::uint32_t who = 0; who < 4; ++who)
    for (std::uint32_t a = 0; a < 4; ++a)
      for (std::uint32_t b = a + 1; b < 4; ++b) {
        if (a == who || b == who) continue;
        for (bool lost : {false, true})
          strike_everywhere(t, group_of(4), fmt::format("{} killed, {} and {} cut", who, a, b),
                            [&](round_lab& lab) {
                              lab.kill(who, lost);
                              lab.cut(a, b, false);
                            });
      }
  report("kill and cut", t);
}

TEST_CASE("a member that reduces a lost part may be killed or cut off at each later state") {
  tally t;
  for (std::uint32_t size : {4u, 5u})
    for (std::uint32_t first = 0; first < size; ++first)
      for (bool cut : {false, true})
        for (std::uint64_t begun : {0u, 9u, 31u, 60u})
          for (std::uint64_t at = 0;; ++at) {
            round_lab lab(group_of(size));
            lab.start();
            for (std::uint64_t i = 0; i < begun; ++i) lab.step();
            std::optional<std::uint32_t> second;
            lab.on_probe = [&](std::uint32_t m, std::string_view point) {
              if (point == probes::part_claimed && !second) second = m;
            };
            lab.kill(first, true);
            bool over = false;
            while (!second && !over) over = !lab.step();
            for (std::uint64_t i = 0; i < at && !over; ++i) over = !lab.step();
            if (over) break;
            if (cut)
              for (std::uint32_t m = 0; m < size; ++m) {
                if (m != *second) lab.cut(*second, m, true);
              }
            else
              lab.kill(*second, false);
            const auto what = fmt::format("{} of {} killed after {}, {} {} {} later", first, size,
                                          begun, *second, cut ? "cut off" : "killed", at);
            if (!lab.run()) FAIL_CHECK(what << ": some never end: " << lab.outcomes());
            for (const auto& error : lab.errors())
              FAIL_CHECK(what << ": " << error << " (" << lab.outcomes() << ")");
            ++t.outcomes[judged(lab)];
            ++t.runs;
            t.delivered += lab.delivered;
          }
  report("second losses", t);
  CHECK(t.outcomes["partial"] > 0);
}

TEST_CASE(
    "random kills, cuts and orders of arrival in groups of two to eight never give two results") {
  tally t;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    auto random = stream(seed, "round_faults");
    auto options = group_of(2 + static_cast<std::uint32_t>(random.below(7)),
                            all_shapes[random.below(std::size(all_shapes))]);
    options.shuffle = seed;
    options.window_chunks = 1 + static_cast<std::uint32_t>(random.below(4));
    round_lab lab(options);
    lab.start();
    for (std::uint64_t faults = 1 + random.below(4); faults > 0; --faults) {
      for (std::uint64_t i = random.below(120); i > 0; --i) lab.step();
      auto a = static_cast<std::uint32_t>(random.below(lab.size())),
           b = static_cast<std::uint32_t>(random.below(lab.size()));
      const auto lost = random.below(2) == 0;
      if (random.below(2) == 0)
        lab.kill(a, lost);
      else if (a != b)
        lab.cut(a, b, lost);
    }
    if (!lab.run()) FAIL_CHECK("seed " << seed << ": some never end: " << lab.outcomes());
    for (const auto& error : lab.errors())
      FAIL_CHECK("seed " << seed << ": " << error << " (" << lab.outcomes() << ")");
    ++t.outcomes[judged(lab)];
    ++t.runs;
    t.delivered += lab.delivered;
  }
  report("random", t);
}
