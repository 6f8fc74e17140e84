#include "netem/wire/relayed_pipe.hpp"
#include "tests/netem/wire/host_fixture.hpp"

using namespace shoal;
using namespace shoal::netem::wire;
using namespace std::chrono_literals;
using netem::host_index;

TEST_CASE("a relay passes frames to the host that they name and states their sender") {
  host_fixture relay(one_that_relays(100));
  const auto one = relay.linked(1, "lab-1"), two = relay.linked(2, "lab-2");
  for (const auto& each : {one, two})
    for (const int i : {0, 1}) pipe_of(*each, i).take_kinds();
  const payload inner{std::vector<std::byte>(60)};
  deferred later;
  CHECK(relay.state.relayed_came(one, {1, node(2), 5}, inner, relay.now, later).link == nullptr);
  REQUIRE(pipe_of(*two, 1).sent.size() == 1);
  const auto head = read_relayed_head(bytes_of(pipe_of(*two, 1).sent[0]));
  REQUIRE(head);
  CHECK(head->other == node(1));
  CHECK(head->link == 5);
  CHECK(relay.all.relayed_bytes == 60);

  SUBCASE("until its budget is spent, which the relay tells the sender") {
    relay.state.relayed_came(one, {1, node(2), 5}, inner, relay.now, later);
    CHECK(pipe_of(*one, 1).take_kinds() == kinds{frame_kind::relay_end});
    CHECK(pipe_of(*two, 1).sent.size() == 1);
  }
  SUBCASE("and tells the sender if there is no such host") {
    relay.state.relayed_came(one, {0, node(3), 5}, payload{std::vector<std::byte>(1)}, relay.now,
                             later);
    CHECK(pipe_of(*one, 0).take_kinds() == kinds{frame_kind::relay_end});
  }
  SUBCASE("and tells the other end when one end is gone") {
    relay.state.remove(one, relay.now);
    CHECK(pipe_of(*two, 0).take_kinds() == kinds{frame_kind::relay_end});
  }
  SUBCASE("and passes on the end of a link") {
    CHECK(relay.state.relay_ended(two, 0, {node(1), 5}, relay.now) == nullptr);
    CHECK(pipe_of(*one, 0).take_kinds() == kinds{frame_kind::relay_end});
    relay.state.remove(one, relay.now);
    CHECK(pipe_of(*two, 0).take_kinds().empty());
  }
}

TEST_CASE(
    "a host that only dials accepts a new link over a relay, and the link begins with a hello") {
  host_fixture host;
  const auto relay = host.linked(1, "lab-1");
  relay->theirs.relays = 1;
  const auto bytes = [](frame_kind kind) {
    return payload{std::vector<std::byte>{static_cast<std::byte>(kind)}};
  };
  deferred later;
  CHECK(host.state.relayed_came(relay, {0, node(2), 5}, bytes(frame_kind::message), host.now, later)
            .link == nullptr);
  CHECK(host.state.relayed_came(relay, {0, node(0), 5}, bytes(frame_kind::hello), host.now, later)
            .link == nullptr); // the host itself
  const auto fresh =
      host.state.relayed_came(relay, {0, node(2), 5}, bytes(frame_kind::hello), host.now, later);
  REQUIRE(fresh.link);
  CHECK(fresh.fresh);
  CHECK(fresh.link->relayed == node(2));
  const auto known =
      host.state.relayed_came(relay, {1, node(2), 5}, bytes(frame_kind::hello), host.now, later);
  CHECK(known.link == fresh.link);
  CHECK_FALSE(known.fresh);
  CHECK(host.state.relay_ended(relay, 0, {node(2), 5}, host.now) == fresh.link);
  // The end of the link to the relay ends the links that go over the relay.
  CHECK(host.state.remove(relay, host.now).orphans == std::vector{fresh.link});
}

TEST_CASE("a host that listens accepts no link over a relay") {
  host_fixture host(one_that_listens());
  const auto relay = host.linked(1, "lab-1");
  deferred later;
  const payload hello{std::vector<std::byte>{static_cast<std::byte>(frame_kind::hello)}};
  CHECK(host.state.relayed_came(relay, {0, node(2), 5}, hello, host.now, later).link == nullptr);
}

TEST_CASE("a host that did not offer to relay brings no links of others and becomes no relay") {
  host_fixture host;
  const auto mallory = host.linked(1, "mallory");
  deferred later;
  const payload hello{std::vector<std::byte>{static_cast<std::byte>(frame_kind::hello)}};
  CHECK(host.state.relayed_came(mallory, {0, node(2), 5}, hello, host.now, later).link == nullptr);
  CHECK(host.state.links.over_relay(mallory).empty());
  host.send(7, 100);
  host.state.learn_where(*mallory, {node(7), "lab-7", ""}, host.now, host.later);
  CHECK(host.later.greet.empty());
}

TEST_CASE("with keys a link over a relay begins with a greeting that proves the other end") {
  wire_options options;
  options.keys = {std::make_shared<const signing_key>(signing_key::make()), "a certificate"};
  host_fixture host({}, options);
  const auto relay = host.linked(1, "lab-1");
  relay->theirs.relays = 1;
  deferred later;
  const auto first = [&](frame_kind kind) {
    const payload bytes{std::vector<std::byte>{static_cast<std::byte>(kind)}};
    return host.state.relayed_came(relay, {0, node(2), 5}, bytes, host.now, later).link;
  };
  CHECK(first(frame_kind::hello) == nullptr);
  const auto link = first(frame_kind::greeting);
  REQUIRE(link);
  CHECK_FALSE(static_cast<relayed_pipe&>(*link->pipes[0].through)
                  .came(payload{std::vector<std::byte>(200)}));
}

TEST_CASE("a relay that invents links makes a bounded number of them, not one for each frame") {
  host_fixture host;
  const auto relay = host.linked(1, "lab-1");
  relay->theirs.relays = 1;
  deferred later;
  const payload hello{std::vector<std::byte>{static_cast<std::byte>(frame_kind::hello)}};
  const auto begins = [&](host_index other, std::uint64_t link) {
    return host.state.relayed_came(relay, {0, node(other), link}, hello, host.now, later).link;
  };
  SUBCASE("from one host") {
    for (std::uint64_t link = 0; link < 1000; ++link) begins(2, link);
    CHECK(host.state.links.over_relay(relay).size() == 4);
  }
  SUBCASE("from many hosts") {
    for (std::uint64_t link = 0; link < 1000; ++link)
      begins(2 + static_cast<host_index>(link % 200), link);
    CHECK(host.state.links.over_relay(relay).size() == 128);
  }
  SUBCASE("that end at once") {
    std::size_t made = 0;
    for (std::uint64_t link = 0; link < 10'000; ++link)
      if (const auto each = begins(2, link)) {
        ++made;
        host.state.remove(each, host.now);
      }
    CHECK(made == 512);
    host.now += 1min;
    CHECK(begins(2, 10'001));
  }
}

TEST_CASE("a link over a relay replaces no direct link with the same host") {
  host_fixture host;
  const auto relay = host.linked(1, "lab-1"), direct = host.linked(2, "lab-2");
  relay->theirs.relays = 1;
  deferred later;
  const payload hello{std::vector<std::byte>{static_cast<std::byte>(frame_kind::hello)}};
  const auto over = host.state.relayed_came(relay, {0, node(2), 5}, hello, host.now, later).link;
  REQUIRE(over);
  over->theirs.name = "lab-2";
  CHECK(host.state.connect(over, 2, {}, {}, {}, host.now).replaced.empty());
  CHECK(host.state.hosts.of(2).up == direct);
}

TEST_CASE("a host is dialled over the relay that offers itself and frames travel inside the "
          "relay's link") {
  host_fixture host;
  const auto relay = host.linked(1, "lab-1");
  relay->theirs.relays = 1;
  host.send(7, 100);
  host.later = {};
  host.state.learn_where(*relay, {node(7), "lab-7", ""}, host.now, host.later);
  REQUIRE(host.later.greet.size() == 1);
  const auto link = host.later.greet[0].with;
  CHECK(link->target == "lab-7");
  pipe_of(*relay, 0).take_kinds();
  link->pipes[0].through->send(frame_writer(frame_kind::ping).done());
  REQUIRE(pipe_of(*relay, 0).sent.size() == 1);
  const auto head = read_relayed_head(bytes_of(pipe_of(*relay, 0).sent[0]));
  REQUIRE(head);
  CHECK(head->other == node(7));
  CHECK(head->link == link->token);
  link->pipes[0].through->close();
  CHECK(pipe_of(*relay, 0).take_kinds().back() == frame_kind::relay_end);
}

TEST_CASE("a relay with budget left offers itself for hosts that cannot be dialled") {
  host_fixture relay(one_that_relays(100)), other;
  for (auto* each : {&relay, &other}) {
    const auto asks = each->linked(1, "lab-1");
    each->linked(2, "lab-2");
    each->linked(3, "lab-3", "10.0.0.3:7000");
    pipe_of(*asks, 0).take_kinds();
    each->state.answer_where(*asks, node(3), each->now);
    CHECK(pipe_of(*asks, 0).take_kinds() == kinds{frame_kind::node_at});
    each->state.answer_where(*asks, node(2), each->now);
    CHECK(pipe_of(*asks, 0).take_kinds().size() == (each == &relay ? 1 : 0));
    each->state.answer_where(*asks, node(9), each->now);
    CHECK(pipe_of(*asks, 0).take_kinds().empty());
  }
}
