#include "actors/training/observations.hpp"
#include "kernels/base/rng.hpp"
#include "scenarios/observe/event_log.hpp"
#include "tests/scenarios/observe/helpers.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>

using namespace shoal;
using namespace shoal::scenarios;
using namespace shoal::scenarios::test;
using netem::delivered_event;
using netem::event_kind;

namespace {

host_identity who(netem::host_index host) {
  return {"home-" + std::to_string(host % 4), host % 4, host / 4};
}

std::vector<nlohmann::json> lines_of(const std::filesystem::path& path) {
  std::vector<nlohmann::json> out;
  auto reader = event_log_reader::open(path);
  REQUIRE(reader.ok());
  std::string line;
  for (;;) {
    auto more = reader->next(line);
    REQUIRE(more.ok());
    if (!*more) return out;
    out.push_back(nlohmann::json::parse(line));
  }
}

/// Writes one of everything and returns the lines.
std::vector<nlohmann::json> log_of(event_detail detail, bool everyone,
                                   const std::vector<std::uint32_t>& machines) {
  scratch temp;
  host_names names(who);
  auto file = output_file::create(temp.path / "events.jsonl.zst");
  REQUIRE(file.ok());
  event_log log(std::move(*file), detail, names, everyone, machines);
  log.on_event({event_kind::host_started, duration(1), duration(1), {6, 0}, {6, 0}, "", 0});
  log.on_event({event_kind::message, duration(9), duration(4), {1, 2}, {6, 3}, "part_chunk", 77});
  log.on_event({event_kind::timer, duration(10), duration(10), {3, 2}, {3, 2}, "tick", 0});
  log.on_event({event_kind::down, duration(11), duration(11), {1, 2}, {3, 0}, "down", 0});
  log.on_observation(duration(12), 2, "home-2", actors::trained{});
  log.on_observation(duration(13), 2, "home-2",
                     ending(4, 1, 3, actors::outcome::partial, actors::reason::sender_lost,
                            {{0, 5, {0, 1, 2}, 9}, {5, 9, {0, 1}, 6}}));
  log.on_observation(duration(14), 3, "home \"3\"", actors::misbehaved{7, "a\nb"});
  log.on_event({event_kind::host_killed, duration(15), duration(15), {6, 0}, {6, 0}, "", 0});
  REQUIRE(log.close().ok());
  return lines_of(temp.path / "events.jsonl.zst");
}

/// A type of another program, which the log does not know.
struct warmed_up {
  static constexpr std::string_view observed_as = "warmed_up";
  std::uint64_t degrees = 0;
  std::string logged_fields() const { return R"("degrees":)" + std::to_string(degrees); }
};
struct cooled_down {
  static constexpr std::string_view observed_as = "cooled_down";
};

} // namespace

TEST_CASE("an observation of an unknown type is logged with the fields that it writes itself, if "
          "it writes any") {
  scratch temp;
  host_names names(who);
  auto file = output_file::create(temp.path / "events.jsonl.zst");
  REQUIRE(file.ok());
  event_log log(std::move(*file), event_detail::rounds, names, true, {});
  log.on_observation(duration(12), 2, "home-2", warmed_up{30});
  log.on_observation(duration(13), 2, "home-2", cooled_down{});
  REQUIRE(log.close().ok());
  const auto lines = lines_of(temp.path / "events.jsonl.zst");
  REQUIRE(lines.size() == 1);
  CHECK(
      lines[0] ==
      nlohmann::json{{"time_ns", 12}, {"host", "home-2"}, {"what", "warmed_up"}, {"degrees", 30}});
}

TEST_CASE("the log of all events names sender, receiver, times and size") {
  const auto lines = log_of(event_detail::all, true, {});
  REQUIRE(lines.size() == 7);
  CHECK(lines[0] == nlohmann::json{{"time_ns", 1}, {"what", "host_started"}, {"host", "home-2#1"}});
  CHECK(lines[1] == nlohmann::json{{"time_ns", 9},
                                   {"what", "message"},
                                   {"sent_ns", 4},
                                   {"from", "home-1#0/2"},
                                   {"to", "home-2#1/3"},
                                   {"type", "part_chunk"},
                                   {"bytes", 77}});
  CHECK(lines[2]["what"] == "timer");
  CHECK(lines[3] ==
        nlohmann::json{
            {"time_ns", 11}, {"what", "down"}, {"from", "home-1#0/2"}, {"to", "home-3#0/0"}});
  CHECK(lines[4]["outcome"] == "partial");
  CHECK(lines[4]["reason"] == "sender_lost");
  CHECK(lines[4]["parts_incomplete"] == 1);
  CHECK(lines[5]["host"] == "home \"3\"");
  CHECK(lines[5]["why"] == "a\nb");
  CHECK(lines[6]["what"] == "host_killed");
}

TEST_CASE("with rounds only hosts and observations are logged, with none nothing is") {
  const auto lines = log_of(event_detail::rounds, true, {});
  REQUIRE(lines.size() == 4);
  CHECK(lines[0]["what"] == "host_started");
  CHECK(lines[1]["what"] == "round_ended");
  CHECK(lines[2]["what"] == "misbehaved");
  CHECK(lines[3]["what"] == "host_killed");
  CHECK(log_of(event_detail::none, true, {}).empty());
}

TEST_CASE("a sample of machines keeps what happens on them") {
  const auto lines = log_of(event_detail::all, false, {3});
  REQUIRE(lines.size() == 3);
  CHECK(lines[0]["what"] == "timer");
  CHECK(lines[1]["what"] == "down");
  CHECK(lines[2]["what"] == "misbehaved");
}

TEST_CASE("a sample of machines follows the seed") {
  std::vector<std::uint32_t> all(100);
  for (std::uint32_t i = 0; i < 100; ++i) all[i] = i;
  const auto one = sample_machines(1, all, 10);
  CHECK(one.size() == 10);
  CHECK(std::is_sorted(one.begin(), one.end()));
  CHECK(one == sample_machines(1, all, 10));
  CHECK(one != sample_machines(2, all, 10));
  CHECK(sample_machines(1, all, 0) == all);
  CHECK(sample_machines(1, all, 1000) == all);
}

TEST_CASE("a hundred thousand lines come back in order, and a damaged log is an error") {
  scratch temp;
  const auto path = temp.path / "events.jsonl.zst";
  host_names names(who);
  auto file = output_file::create(path);
  REQUIRE(file.ok());
  event_log log(std::move(*file), event_detail::all, names, true, {});
  for (int i = 0; i < 100'000; ++i)
    log.on_event({event_kind::timer, duration(i), duration(i), {3, 2}, {3, 2}, "tick", 0});
  REQUIRE(log.close().ok());

  auto reader = event_log_reader::open(path);
  REQUIRE(reader.ok());
  std::string line;
  int count = 0;
  bool in_order = true;
  for (auto more = reader->next(line); more.ok() && *more; more = reader->next(line)) {
    in_order = in_order && line.starts_with("{\"time_ns\":" + std::to_string(count) + ",");
    ++count;
  }
  CHECK(in_order);
  CHECK(count == 100'000);

  const std::string whole = read_file(path).value();
  const auto fails = [&](const std::string& content) {
    const auto bad = temp.path / "bad.zst";
    std::ofstream(bad, std::ios::binary) << content;
    auto r = event_log_reader::open(bad);
    REQUIRE(r.ok());
    for (;;) {
      auto more = r->next(line);
      if (!more.ok()) return more.error().find(bad.string()) != std::string::npos;
      if (!*more) return false;
    }
  };
  CHECK(fails(whole.substr(0, whole.size() / 2)));
  CHECK(fails("this is not compressed"));
  CHECK(fails(""));
  CHECK(!event_log_reader::open(temp.path / "none").ok());
}

TEST_CASE("a log that cannot be written says so before the end") {
  host_names names(who);
  // A device that is always full; the rename never happens.
  scratch temp;
  std::filesystem::create_symlink("/dev/full", temp.path / "events.jsonl.zst.partial");
  auto file = output_file::create(temp.path / "events.jsonl.zst");
  REQUIRE(file.ok());
  event_log log(std::move(*file), event_detail::all, names, true, {});
  rng draw(1);
  for (int i = 0; i < 200'000 && !log.error(); ++i) {
    const duration time(static_cast<std::int64_t>(draw.next() >> 1)); // little to compress
    log.on_event({event_kind::message, time, time, {1, 2}, {6, 3}, "part_chunk", draw.next()});
  }
  CHECK(log.error().has_value());
  const auto closed = log.close();
  REQUIRE(!closed.ok());
  CHECK(closed.error().starts_with("cannot write '" + (temp.path / "events.jsonl.zst").string() +
                                   "': "));
}

TEST_CASE("a final round is a line of the whole swarm's log, if one of its members is logged") {
  const auto lines = [](event_detail detail, bool everyone, std::vector<std::uint32_t> machines,
                        observed_view view) {
    scratch temp;
    host_names names(who);
    event_log log(std::move(*output_file::create(temp.path / "e")), detail, names, everyone,
                  machines, view);
    swarm_round round = good_round();
    for (std::uint32_t i = 0; i < 2; ++i)
      round.members[i].peer = (std::uint64_t{i} + 1) << 16; // machines 0 and 1
    round.started = 4s;
    log.on_round(round);
    round.unfinished = true;
    log.on_round(round);
    REQUIRE(log.close().ok());
    return lines_of(temp.path / "e");
  };
  const auto all = lines(event_detail::rounds, true, {}, observed_view::whole);
  REQUIRE(all.size() == 1);
  CHECK(all[0] == nlohmann::json{{"time_ns", 10'000'000'000},
                                 {"what", "round"},
                                 {"epoch", 1},
                                 {"group", group(1).hex()},
                                 {"members", 2},
                                 {"outcome", "ok"},
                                 {"reason", "none"},
                                 {"started_ns", 4'000'000'000},
                                 {"first_of_two", false},
                                 {"samples", 4}});
  CHECK(lines(event_detail::all, false, {1}, observed_view::whole).size() == 1);
  CHECK(lines(event_detail::rounds, false, {2}, observed_view::whole).empty());
  CHECK(lines(event_detail::none, true, {}, observed_view::whole).empty());
  CHECK(lines(event_detail::rounds, true, {}, observed_view::local).empty());
}

TEST_CASE("in local view the log says what the host contributed and whose data came out, and can "
          "be read before it ends") {
  scratch temp;
  host_names names(who);
  event_log log(std::move(*output_file::create(temp.path / "e")), event_detail::rounds, names, true,
                {}, observed_view::local);
  log.on_observation(1s, 2, "home-2", contribution(4, 1, 3, {{5, 2}, {9, 1}}, {1}));
  log.on_observation(2s, 2, "home-2",
                     ending(4, 1, 3, actors::outcome::partial, actors::reason::sender_lost,
                            {{0, 5, {0, 1}, 9}, {5, 9, {1}, 6}, {9, 9, {2}, 1}}));
  log.flush();
  log.on_observation(3s, 2, "home-2", actors::misbehaved{7, "not flushed"});
  auto reader = event_log_reader::open(temp.path / "e.partial");
  REQUIRE(reader.ok());
  std::string line;
  REQUIRE(*reader->next(line));
  auto contributed = nlohmann::json::parse(line);
  CHECK(contributed["what"] == "contributed");
  CHECK(contributed["samples"] == 3);
  CHECK(contributed["weight"] == 3);
  CHECK(contributed["takes"] == true);
  REQUIRE(*reader->next(line));
  CHECK(nlohmann::json::parse(line)["senders"] == nlohmann::json::array({0, 1}));
  CHECK(!reader->next(line).ok()); // the line is cut off
  REQUIRE(log.close().ok());
  CHECK(lines_of(temp.path / "e").size() == 3);
}
