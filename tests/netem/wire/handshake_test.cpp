#include "netem/wire/handshake.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::netem::wire;
using namespace std::chrono_literals;

namespace {

constexpr std::int64_t noon = 1'700'000'000'000'000'000;

handshake_rules rules_of_reef() {
  handshake_rules out;
  out.name = "lab-1";
  out.incarnation = 3;
  out.most_clock_difference = 2min;
  out.scenario.fill(7);
  out.scenario_text = "seed: 3";
  return out;
}

hello hello_of_other() {
  hello out;
  out.name = "lab-2";
  out.incarnation = 1;
  out.utc_ns = noon;
  out.scenario.fill(7);
  return out;
}

refusal checked(const handshake_rules& rules, const hello& theirs,
                const attested_name& attested = {}) {
  return check_hello(rules, theirs, attested, noon).why;
}

} // namespace

TEST_CASE("before a link is up each pipe accepts one hello of bounded length or a refusal") {
  const link_phase fresh;
  CHECK(step_of(fresh, frame_kind::hello, 100) == frame_step::hello);
  CHECK(step_of(fresh, frame_kind::hello, longest_hello) == frame_step::hello);
  CHECK(step_of(fresh, frame_kind::hello, longest_hello + 1) == frame_step::wrong);
  CHECK(step_of({.hello_came = true}, frame_kind::hello, 100) == frame_step::wrong);
  CHECK(step_of(fresh, frame_kind::refused, 100'000) == frame_step::refused);
  for (const auto kind : {frame_kind::message, frame_kind::ping, frame_kind::leaving,
                          frame_kind::relayed, static_cast<frame_kind>(200)})
    CHECK(step_of(fresh, kind, 40) == frame_step::wrong);
}

TEST_CASE("a link that is up handles all frames and one that has ended drops them") {
  CHECK(step_of({.up = true}, frame_kind::message, 40) == frame_step::handle);
  CHECK(step_of({.up = true, .hello_came = true}, frame_kind::hello, 40) == frame_step::handle);
  CHECK(step_of({.up = true, .closed = true}, frame_kind::message, 40) == frame_step::drop);
  CHECK(step_of({.closed = true}, frame_kind::hello, 40) == frame_step::drop);
}

TEST_CASE("a hello of another host with the same scenario and clock is accepted") {
  CHECK(checked(rules_of_reef(), hello_of_other()) == refusal::none);
}

TEST_CASE("a hello must carry the name in the certificate or the name that the relay knows") {
  auto rules = rules_of_reef();
  rules.keys = true;
  const auto theirs = hello_of_other();
  CHECK(checked(rules, theirs, {.certificate_name = "lab-2"}) == refusal::none);
  const auto said = check_hello(rules, theirs, {.certificate_name = "mallory"}, noon);
  CHECK(said.why == refusal::borrowed_name);
  CHECK(said.text == "the certificate is mallory's, not lab-2's");
  CHECK(checked(rules, theirs, {.certificate_name = {}, .relayed = true, .relay_agrees = true}) ==
        refusal::none);
  CHECK(check_hello(rules, theirs, {.certificate_name = {}, .relayed = true}, noon).text ==
        "the relay knows it by another name than lab-2");
}

TEST_CASE("a host links neither with itself nor with another process of its name") {
  auto theirs = hello_of_other();
  theirs.name = "lab-1";
  CHECK(checked(rules_of_reef(), theirs) == refusal::name_taken);
  theirs.incarnation = 3;
  CHECK(checked(rules_of_reef(), theirs) == refusal::ourselves);
}

TEST_CASE("a clock may be off by the limit and the refusal says by how much it is off") {
  auto theirs = hello_of_other();
  theirs.utc_ns = noon + duration(2min).count();
  CHECK(checked(rules_of_reef(), theirs) == refusal::none);
  theirs.utc_ns = noon - duration(2min).count();
  CHECK(checked(rules_of_reef(), theirs) == refusal::none);
  theirs.utc_ns = noon - duration(3min).count();
  const auto behind = check_hello(rules_of_reef(), theirs, {}, noon);
  CHECK(behind.why == refusal::clock_off);
  CHECK(behind.text == "its clock is " + to_string(duration(3min)) + " behind that of lab-1");
  theirs.utc_ns = noon + duration(3min).count();
  CHECK(check_hello(rules_of_reef(), theirs, {}, noon).text ==
        "its clock is " + to_string(duration(3min)) + " ahead of that of lab-1");
}

TEST_CASE(
    "a host of another scenario receives this one's text so that it can name the difference") {
  auto theirs = hello_of_other();
  theirs.scenario.fill(8);
  const auto said = check_hello(rules_of_reef(), theirs, {}, noon);
  CHECK(said.why == refusal::other_scenario);
  CHECK(said.text == "seed: 3");
}
