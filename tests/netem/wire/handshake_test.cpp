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

TEST_CASE("before a link is up only the side that dialled takes one revocation list on each pipe") {
  const auto list = frame_kind::revocation_list;
  CHECK(step_of({.dialled = true}, list, 100'000) == frame_step::list);
  CHECK(step_of({.dialled = true, .list_came = true}, list, 100) == frame_step::wrong);
  CHECK(step_of({}, list, 100) == frame_step::wrong);
}

TEST_CASE("a hello whose name or address could reach a resolver or a terminal is refused") {
  const auto reads = [](const std::string& name, const std::string& address) {
    hello out = hello_of_other();
    out.name = name;
    out.address = address;
    bool other_version = false;
    const auto sent = to_frame(out);
    return read_hello(std::as_bytes(std::span(sent.head)), other_version).has_value();
  };
  CHECK(reads("lab-2", ""));
  CHECK(reads("lab-2", "10.0.0.5:7000"));
  CHECK(reads("lab-2", "lab-2.example.org:7000"));
  CHECK(reads("lab-2", "[fe80::1%eth0]:7000"));
  for (const char* bad :
       {"unix:/tmp/socket", "unix:/tmp/socket:1", "unix-abstract:x:1", "dns:lab-2:7000",
        "dns:///lab-2:7000", "ipv4:10.0.0.5:7000", "vsock:2:7000", "lab-2", "lab-2:", "a b:1",
        "lab\xff:1", "lab\x1b[31m:1", "lab?x=y:1", "lab#x:1", "user@lab:1", "lab%2e:1"})
    CHECK_FALSE_MESSAGE(reads("lab-2", bad), bad);
  for (const char* bad : {"", "-lab", "lab 2", "lab\n2", "lab\x1b[31m", "lab/2", "lab\xff", "a..b"})
    CHECK_FALSE_MESSAGE(reads(bad, ""), bad);
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
  CHECK(checked(rules, theirs,
                {.certificate_name = "lab-2", .relayed = true, .relay_agrees = true}) ==
        refusal::none);
  CHECK(check_hello(rules, theirs, {.certificate_name = "lab-2", .relayed = true}, noon).text ==
        "the relay knows it by another name than lab-2");
  // The word of a relay does not replace the certificate.
  CHECK(checked(rules, theirs, {.certificate_name = {}, .relayed = true, .relay_agrees = true}) ==
        refusal::borrowed_name);
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
