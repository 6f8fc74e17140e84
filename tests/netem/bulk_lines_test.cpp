#include "netem/bulk_lines.hpp"

#include <doctest/doctest.h>

#include <map>
#include <set>

using namespace shoal;
using namespace shoal::netem;
using namespace std::chrono_literals;

namespace {

/// Hosts of 1 MB/s, 10 ms from each other, and their bulk lines. There are no actors and no clock.
struct bulk_world : bulk_lines::surroundings {
  topology places;
  host_table hosts{nullptr, nullptr};
  message_table messages;
  paths ways;
  bulk_lines lines;

  std::set<std::pair<host_index, host_index>> cuts;
  std::vector<std::pair<host_index, host_index>> waiting;
  std::vector<std::pair<std::uint64_t, duration>> arrivals; // bytes, time
  std::vector<std::uint64_t> lost_bytes;
  std::vector<transfer_record> records;
  int changes = 0;
  bool holds_arrivals = false;

  explicit bulk_world(transfer_model model = transfer_model::max_min, std::size_t count = 3,
                      const tcp_options& tcp = {})
      : ways(places, hosts, model, {}, 5s), lines(messages, ways, tcp, true) {
    places.add_region("here");
    places.set_path(0, 0, {.delay = 10ms});
    for (std::size_t i = 0; i < count; ++i) {
      machine_options what;
      what.up = what.down = data_rate{8e6};
      const auto up = lines.add_link(what.up), down = lines.add_link(what.down);
      const auto machine = places.add_machine(what, up, down);
      hosts.add({.where = {machine, places[machine].place},
                 .up = what.up,
                 .uplink = up,
                 .node = {},
                 .jitter = stream(1, "test")});
    }
  }

  std::uint32_t send(host_index from, host_index to, std::uint64_t bytes, duration now) {
    const auto number = messages.keep({.address = {},
                                       .element = {},
                                       .from = {from, 1},
                                       .to = {to, 2},
                                       .bytes = bytes,
                                       .sent = now});
    if (lines.append(number)) lines.begin(number, now, *this);
    return number;
  }
  /// Runs all events up to `until`.
  void run(duration until = 1h) {
    while (const auto next = lines.next_event()) {
      if (*next > until) return;
      lines.finish(*next, *this);
    }
  }

  bool blocked(host_index from, host_index to, host_index) override {
    return cuts.contains({from, to});
  }
  void waits_at_cut(host_index from, host_index to, host_index) override {
    waiting.emplace_back(from, to);
  }
  void arrives(std::uint32_t message, duration at) override {
    if (holds_arrivals) return;
    const auto what = messages.take(message);
    arrivals.emplace_back(what.bytes, at);
    lines.arrived(what.line);
  }
  void lost(std::uint32_t message) override { lost_bytes.push_back(messages.take(message).bytes); }
  void ended(std::unique_ptr<transfer_record> what) override { records.push_back(*what); }
  void changed() override { ++changes; }
};

using arrival_list = std::vector<std::pair<std::uint64_t, duration>>;

} // namespace

TEST_CASE("messages of one pair follow each other, and each arrives one delay after it has left") {
  bulk_world w;
  w.send(0, 1, 1'000'000, 0s);
  w.send(0, 1, 500'000, 0s);
  CHECK(w.lines.sending() == 1);
  w.run();
  CHECK(w.arrivals == arrival_list{{1'000'000, 1010ms}, {500'000, 1510ms}});
  CHECK(w.lines.sending() == 0);
  CHECK(w.lines.orphaned() == 0);
  CHECK_FALSE(w.lines.busy(0));
}

TEST_CASE("connections of one host share its uplink") {
  bulk_world w;
  w.send(0, 1, 1'000'000, 0s);
  w.send(0, 2, 1'000'000, 0s);
  CHECK(w.lines.sending() == 2);
  w.run();
  CHECK(w.arrivals == arrival_list{{1'000'000, 2010ms}, {1'000'000, 2010ms}});
}

TEST_CASE("a record tells when a transfer was sent, when it began and ended, and when it arrived") {
  bulk_world w;
  w.send(0, 1, 1'000'000, 0s);
  w.send(0, 1, 1'000'000, 0s);
  w.run();
  REQUIRE(w.records.size() == 2);
  const auto& second = w.records[1];
  CHECK(second.number == 2);
  CHECK(second.sent == 0s);
  CHECK(second.begun == 1s);
  CHECK(second.left == 2s);
  CHECK(second.arrives == 2010ms);
  CHECK(second.round_trip == 20ms);
  CHECK(second.from.ordinal == 1);
  CHECK(second.to.ordinal == 2);
  CHECK_FALSE(second.cut);
  CHECK_FALSE(second.steps.empty());
}

TEST_CASE("the death of a host breaks its connections both ways and no others") {
  bulk_world w;
  w.send(0, 1, 100, 0s);
  w.send(0, 1, 200, 0s);
  w.send(2, 0, 300, 0s);
  w.send(2, 1, 400, 0s);
  w.lines.break_lines_of(0, 10us, w);
  CHECK(w.lost_bytes == std::vector<std::uint64_t>{100, 200, 300});
  CHECK(w.lines.sending() == 1);
  CHECK(w.lines.orphaned() == 0);
  w.run();
  REQUIRE(w.arrivals.size() == 1);
  CHECK(w.arrivals[0].first == 400);
  CHECK(w.records[0].cut);
}

TEST_CASE("the order of lost messages depends on the hosts and not on the order of sending") {
  for (const bool reversed : {false, true}) {
    bulk_world w;
    w.send(0, reversed ? 2 : 1, 1000, 0s);
    w.send(0, reversed ? 1 : 2, 1000, 0s);
    w.lines.break_lines_of(0, 10us, w);
    REQUIRE(w.records.size() == 2);
    CHECK(w.records[0].to.host == 1);
  }
}

TEST_CASE("a cut stops the running transfer, and the rest continues afterwards") {
  bulk_world w;
  w.send(0, 1, 1'000'000, 0s);
  w.send(2, 1, 1'000, 0s);
  w.run(400ms);
  w.cuts.insert({0, 1});
  w.lines.stop_blocked(500ms, w);
  CHECK(w.waiting == std::vector<std::pair<host_index, host_index>>{{0, 1}});
  const auto stopped = w.lines.stopped(pair_of(0, 1));
  REQUIRE(stopped);
  CHECK_FALSE(w.lines.stopped(pair_of(2, 1)));
  w.lines.go_on(*stopped, 1s, w); // the cut is still in force
  CHECK(w.lines.stopped(pair_of(0, 1)));
  w.cuts.clear();
  w.lines.go_on(*stopped, 2s, w);
  CHECK_FALSE(w.lines.stopped(pair_of(0, 1)));
  w.run();
  REQUIRE(w.arrivals.size() == 2);
  // The other message used the receiver's line for a millisecond.
  CHECK(to_seconds(w.arrivals[1].second) == doctest::Approx(2.511).epsilon(0.001));
}

TEST_CASE("a message that is sent into a cut stops at once, and go_on() resumes only the stopped "
          "transfer") {
  bulk_world w;
  w.cuts.insert({0, 1});
  w.send(0, 1, 1000, 0s);
  const auto first = w.lines.stopped(pair_of(0, 1));
  REQUIRE(first);
  w.lines.break_line(pair_of(0, 1), 1s, w);
  CHECK(w.lost_bytes == std::vector<std::uint64_t>{1000});
  w.send(0, 1, 2000, 1s);
  w.cuts.clear();
  w.lines.go_on(*first, 2s, w);
  CHECK(w.lines.stopped(pair_of(0, 1)));
}

TEST_CASE("a change is reported once until it is taken") {
  bulk_world w;
  w.send(0, 1, 1'000'000, 0s);
  w.send(0, 2, 1'000'000, 0s);
  CHECK(w.changes == 1);
  CHECK(w.lines.take_changed());
  CHECK_FALSE(w.lines.take_changed());
  w.lines.retune(0, 1ms, w);
  CHECK(w.changes == 2);
}

TEST_CASE("changed capacities and conditions affect a running transfer") {
  bulk_world w;
  w.send(0, 1, 2'000'000, 0s);
  w.lines.set_capacities(w.hosts[0].uplink, data_rate{4e6}, link_id{1}, data_rate{8e6}, 1s, w);
  w.run();
  CHECK(w.arrivals == arrival_list{{2'000'000, 3010ms}});
  w.places.set_path(0, 0, {.delay = 10ms, .flow_cap = 2e6});
  w.send(0, 1, 1'000'000, 10s);
  w.run();
  CHECK(w.arrivals.back() == std::pair(std::uint64_t{1'000'000}, duration(14s + 10ms)));
}

TEST_CASE(
    "the window of a pair is kept for a while and forgotten when the connection is given up") {
  const auto second_takes = [](bool forgotten, duration pause) {
    bulk_world w(transfer_model::tcp);
    w.send(0, 1, 500'000, 0s);
    w.run();
    REQUIRE(w.arrivals.size() == 1);
    if (forgotten) w.lines.forget_window(pair_of(0, 1));
    const auto begun = w.arrivals[0].second + pause;
    w.send(0, 1, 20'000, begun);
    w.run();
    REQUIRE(w.arrivals.size() == 2);
    return w.arrivals[1].second - begun;
  };
  const auto kept = second_takes(false, 1ms);
  CHECK(second_takes(true, 1ms) > kept);
  CHECK(second_takes(false, 2min) > kept);
}

TEST_CASE("the last arrival of a connection is known until the connection is forgotten") {
  bulk_world w;
  CHECK(w.lines.behind_last(pair_of(0, 1), 7ms) == 7ms);
  const auto number = w.messages.keep(
      {.address = {}, .element = {}, .from = {0, 1}, .to = {1, 2}, .bytes = 1'000'000});
  REQUIRE(w.lines.append(number));
  w.lines.begin(number, 0s, w);
  w.holds_arrivals = true;
  w.run();
  CHECK(w.lines.behind_last(pair_of(0, 1), 7ms) == 1010ms);
  CHECK(w.lines.behind_last(pair_of(0, 1), 7s) == 7s);
  w.lines.arrived(w.messages[number].line);
  CHECK(w.lines.behind_last(pair_of(0, 1), 7ms) == 7ms);
}

namespace {

/// A world whose lines have so many connections, each with a window of 10 kB at 20 ms.
struct striped_world : bulk_world {
  explicit striped_world(std::uint32_t connections)
      : bulk_world(transfer_model::tcp, 3, with(connections)) {}
  static tcp_options with(std::uint32_t connections) {
    tcp_options out;
    out.connections = connections;
    out.max_window = 10'000; // 0.5 MB/s
    return out;
  }
  /// The time at which the last message has come.
  duration last() const { return arrivals.back().second; }
};

} // namespace

TEST_CASE("a line with several connections carries several messages at the same time in order") {
  const auto takes = [](std::uint32_t connections) {
    striped_world w(connections);
    for (std::uint64_t i = 1; i <= 4; ++i) w.send(0, 1, 510'000 - 2'000 * i, 0s);
    w.run();
    // The later ones are shorter, and arrive no earlier.
    REQUIRE(w.arrivals.size() == 4);
    for (std::size_t i = 0; i < 4; ++i) CHECK(w.arrivals[i].first == 508'000 - 2'000 * i);
    for (std::size_t i = 1; i < 4; ++i) CHECK(w.arrivals[i].second >= w.arrivals[i - 1].second);
    CHECK(w.lines.sending() == 0);
    CHECK(w.lines.orphaned() == 0);
    return to_seconds(w.last());
  };
  const auto one = takes(1);
  CHECK(one == doctest::Approx(4).epsilon(0.05));
  CHECK(takes(2) == doctest::Approx(2).epsilon(0.05));
  // The line itself carries 1 MB/s.
  CHECK(takes(4) == doctest::Approx(2).epsilon(0.05));
}

TEST_CASE("a long message is cut into pieces where a line has several connections") {
  striped_world w(2);
  w.send(0, 1, std::uint64_t{4} << 20, 0s);
  CHECK(w.lines.orphaned() == 0);
  w.run();
  REQUIRE(w.arrivals.size() == 1);
  CHECK(w.arrivals[0].first == std::uint64_t{4} << 20);
  CHECK(to_seconds(w.last()) == doctest::Approx(4.2).epsilon(0.05));
  REQUIRE(w.records.size() == 4);
  for (const auto& each : w.records) CHECK(each.bytes == std::uint64_t{1} << 20);
}

TEST_CASE("an empty message keeps its place behind messages that are on their way") {
  striped_world w(3);
  w.send(0, 1, 100'000, 0s);
  w.send(0, 1, 0, 0s);
  w.send(0, 1, 50'000, 0s);
  w.run();
  REQUIRE(w.arrivals.size() == 3);
  CHECK(w.arrivals[0].first == 100'000);
  CHECK(w.arrivals[1].first == 0);
  CHECK(w.arrivals[2].first == 50'000);
}

TEST_CASE("a cut stops all connections of a line and they go on together") {
  striped_world w(3);
  for (int i = 0; i < 2; ++i) w.send(0, 1, 100'000, 0s);
  w.cuts.insert({0, 1});
  w.lines.stop_blocked(50ms, w);
  // A message that comes now waits as well.
  w.send(0, 1, 100'000, 60ms);
  w.run();
  CHECK(w.arrivals.empty());
  const auto held = w.lines.stopped(pair_of(0, 1));
  REQUIRE(held);
  w.lines.go_on(*held, 1s, w);
  CHECK(w.arrivals.empty()); // the cut is still there
  w.cuts.clear();
  w.lines.go_on(*held, 2s, w);
  CHECK_FALSE(w.lines.stopped(pair_of(0, 1)));
  w.run();
  REQUIRE(w.arrivals.size() == 3);
  CHECK(w.arrivals[0].second > 2s);
  CHECK(w.lines.orphaned() == 0);
}

TEST_CASE("a line that breaks loses the messages of all its connections") {
  striped_world w(2);
  for (std::uint64_t i = 1; i <= 4; ++i) w.send(0, 1, 100'000 * i, 0s);
  w.lines.break_line(pair_of(0, 1), 100ms, w);
  CHECK(w.lost_bytes == std::vector<std::uint64_t>{100'000, 200'000, 300'000, 400'000});
  CHECK(w.lines.sending() == 0);
  CHECK(w.lines.orphaned() == 0);
  CHECK_FALSE(w.lines.next_event());
  w.send(0, 1, 1'000, 1s);
  w.run();
  CHECK(w.arrivals.size() == 1);
}
