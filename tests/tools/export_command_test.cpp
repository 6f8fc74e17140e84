// Readers of this file read the exports of a run, and hold them against its directory.
#include "scenarios/export/crc32c.hpp"
#include "scenarios/export/export_formats.hpp"
#include "scenarios/record/explain.hpp"
#include "scenarios/record/run_files.hpp"
#include "scenarios/runner/live_export.hpp"
#include "scenarios/schema/describe.hpp"
#include "tests/support/program.hpp"
#include "tests/support/skip.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

using namespace shoal;
using namespace shoal::scenarios;

namespace {

struct run_folder : scratch_folder {
  std::vector<explained_transfer> transfers;
  std::vector<nlohmann::json> phases, member_rounds, rounds, faults, messages;

  run_folder() {
    std::ofstream(path / "s.yaml")
        << "stop_time: 60s\n"
           "workload: {kind: timing, parameters: 100000}\n"
           "devices: {laptop: {samples_per_second: 10}}\n"
           "peers: {home: {count: 3, up: 10Mbit, down: 50Mbit, device: laptop}}\n"
           "training: {target_batch: 16, micro_batch: 4, epochs: 4}\n"
           "faults: [{restart: machine, select: home-0, at: 5s, downtime: 2s}]\n"
           "record: {events: all}\n";
    REQUIRE(run_program(path, "run s.yaml -q --out r").status == 0);
    REQUIRE(read_transfers(path / "r", [&](explained_transfer t) { transfers.push_back(t); }));
    REQUIRE(read_events(path / "r", {}, [&](const nlohmann::json& line) {
      const std::string what = line.at("what");
      if (what == "phase_changed" && line.at("phase") != "gone") phases.push_back(line);
      if (what == "round_ended") member_rounds.push_back(line);
      if (what == "round") rounds.push_back(line);
      if (what == "fault_begins") faults.push_back(line);
      if (what == "message") messages.push_back(line);
    }));
    REQUIRE(transfers.size() > 10);
    REQUIRE(rounds.size() >= 4);
  }

  std::string read(const std::string& file) const {
    std::ifstream in(path / file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::vector<std::vector<std::string>> table(const std::string& file) const {
    std::istringstream in(read(file));
    std::vector<std::vector<std::string>> out;
    for (std::string line; std::getline(in, line);) {
      out.emplace_back(1);
      for (const char c : line)
        if (c == ',')
          out.back().emplace_back();
        else
          out.back().back() += c;
    }
    return out;
  }
};

std::uint64_t little(std::string_view bytes, std::size_t at, int size) {
  std::uint64_t out = 0;
  for (int i = 0; i < size; ++i)
    out |= std::uint64_t{static_cast<unsigned char>(bytes.at(at + static_cast<std::size_t>(i)))}
           << 8 * i;
  return out;
}
std::uint64_t big(std::string_view bytes, std::size_t at, int size) {
  std::uint64_t out = 0;
  for (int i = 0; i < size; ++i)
    out = out << 8 | static_cast<unsigned char>(bytes.at(at + static_cast<std::size_t>(i)));
  return out;
}

/// The fields of a message of Protocol Buffers by number.
struct message {
  std::map<std::uint32_t, std::vector<std::uint64_t>> numbers;
  std::map<std::uint32_t, std::vector<std::string>> texts;

  explicit message(std::string_view bytes) {
    std::size_t at = 0;
    const auto base128 = [&] {
      std::uint64_t out = 0;
      for (int shift = 0;; shift += 7) {
        const auto byte = static_cast<unsigned char>(bytes.at(at++));
        out |= std::uint64_t{byte & 127U} << shift;
        if (byte < 128) return out;
      }
    };
    while (at < bytes.size()) {
      const auto tag = base128();
      const auto field = static_cast<std::uint32_t>(tag >> 3);
      switch (tag & 7) {
      case 0:
        numbers[field].push_back(base128());
        break;
      case 1:
        numbers[field].push_back(little(bytes, at, 8));
        at += 8;
        break;
      case 5:
        numbers[field].push_back(little(bytes, at, 4));
        at += 4;
        break;
      case 2: {
        const auto size = base128();
        REQUIRE(at + size <= bytes.size());
        texts[field].emplace_back(bytes.substr(at, size));
        at += size;
        break;
      }
      default:
        FAIL("wire type " << (tag & 7));
      }
    }
  }
  std::uint64_t number(std::uint32_t field) const {
    return numbers.contains(field) ? numbers.at(field).front() : 0;
  }
  std::string text(std::uint32_t field) const {
    return texts.contains(field) ? texts.at(field).front() : "";
  }
};

struct trace_slice {
  std::string name, track, process;
  std::int64_t begin = 0, end = -1;
  std::uint64_t flow_out = 0, flow_in = 0;
  std::map<std::string, std::uint64_t> numbers{};
};

} // namespace

TEST_CASE("export --perfetto has slices; flows and counters of all that the run logged") {
  run_folder here;
  const auto told = run_program(here.path, "export r --perfetto trace.pftrace");
  REQUIRE_MESSAGE(told.status == 0, told.text);
  const message trace(here.read("trace.pftrace"));
  std::map<std::uint64_t, std::pair<std::string, std::uint64_t>> tracks; // name and parent
  std::map<std::uint64_t, std::vector<trace_slice>> slices;
  std::map<std::string, std::vector<double>> counters;
  for (const auto& bytes : trace.texts.at(1)) {
    const message packet(bytes);
    REQUIRE(packet.number(10) == 1);
    if (packet.texts.contains(60)) {
      const message track(packet.text(60));
      const std::string process = track.texts.contains(3) ? message(track.text(3)).text(6) : "";
      REQUIRE(!tracks.contains(track.number(1)));
      tracks[track.number(1)] = {process.empty() ? track.text(2) : process, track.number(5)};
      continue;
    }
    const message event(packet.text(11));
    const auto at = static_cast<std::int64_t>(packet.number(8));
    const auto track = event.number(11);
    REQUIRE(tracks.contains(track));
    auto& own = slices[track];
    switch (event.number(9)) {
    case 1:
      REQUIRE((own.empty() || (own.back().end >= 0 && own.back().end <= at))); // no overlap
      own.push_back({event.text(23), tracks[track].first, tracks[tracks[track].second].first, at,
                     -1, event.number(47), event.number(48)});
      if (event.texts.contains(4))
        for (const auto& bytes_of_note : event.texts.at(4))
          if (const message note(bytes_of_note); note.numbers.contains(3))
            own.back().numbers[note.text(10)] = note.number(3);
      break;
    case 2:
      REQUIRE((!own.empty() && own.back().end < 0));
      own.back().end = at;
      break;
    case 4:
      counters[tracks[track].first].push_back(std::bit_cast<double>(event.number(44)));
      break;
    default:
      FAIL("type " << event.number(9));
    }
  }
  std::multiset<std::string> phases, expected_phases;
  std::map<std::uint64_t, trace_slice> sent, received;
  std::size_t rounds = 0, faults = 0, member_rounds = 0;
  for (const auto& [track, all] : slices)
    for (const auto& each : all) {
      CHECK(each.end >= each.begin);
      if (each.track == "phase")
        phases.insert(each.process + " " + each.name + " " + std::to_string(each.begin));
      rounds += each.track.starts_with("rounds");
      faults += each.track.starts_with("faults");
      member_rounds += each.track.starts_with("averaging");
      if (each.flow_out > 0) sent[each.flow_out] = each;
      if (each.flow_in > 0) received[each.flow_in] = each;
    }
  for (const auto& each : here.phases)
    expected_phases.insert(each["host"].get<std::string>() + " " +
                           each["phase"].get<std::string>() + " " +
                           std::to_string(each["time_ns"].get<std::int64_t>()));
  CHECK(phases == expected_phases);
  CHECK(rounds == here.rounds.size());
  CHECK(faults == here.faults.size());
  CHECK(member_rounds == here.member_rounds.size());
  REQUIRE(sent.size() == here.transfers.size());
  REQUIRE(received.size() == here.transfers.size());
  for (const auto& each : here.transfers) {
    CHECK(sent.at(each.number).begin == each.begun.count());
    CHECK(sent.at(each.number).end == each.left.count());
    CHECK(sent.at(each.number).numbers.at("bytes") == each.bytes);
    CHECK(sent.at(each.number).numbers.at("transfer") == each.number);
    CHECK(received.at(each.number).end == std::max(each.left, each.arrives).count());
    CHECK(sent.at(each.number).process == each.from.substr(0, each.from.find('#')));
    CHECK(received.at(each.number).process == each.to.substr(0, each.to.find('#')));
  }
  const auto rows = here.table("r/metrics.csv");
  for (std::size_t i = 1; i < rows[0].size(); ++i) {
    std::vector<double> column;
    for (std::size_t row = 1; row < rows.size(); ++row)
      if (!rows[row][i].empty()) column.push_back(std::stod(rows[row][i]));
    CHECK(counters[rows[0][i]] == column);
  }
}

TEST_CASE("protoc decodes a trace by the schema of Perfetto and finds no unknown field") {
  if (std::system("protoc --version >/dev/null 2>&1") != 0)
    SHOAL_SKIP("protoc is missing (Debian package protobuf-compiler)");
  run_folder here;
  const auto told = run_program(here.path, "export r --perfetto trace.pftrace");
  REQUIRE_MESSAGE(told.status == 0, told.text);
  const auto decoded =
      run_program(here.path, "--version >v; sh -c \"protoc --proto_path='" SHOAL_SOURCE
                             "/tests/tools' --decode=perfetto.protos.Trace perfetto.proto "
                             "<trace.pftrace\"");
  REQUIRE_MESSAGE(decoded.status == 0, decoded.text);
  std::map<std::string, std::size_t> lines;
  std::istringstream in(decoded.text);
  for (std::string line; std::getline(in, line);) {
    line.erase(0, line.find_first_not_of(' '));
    CHECK_MESSAGE(!('0' <= line.front() && line.front() <= '9'), line); // a field without a name
    ++lines[line];
    ++lines[line.substr(0, line.find(':'))];
  }
  const auto slices = here.phases.size() + here.rounds.size() + here.faults.size() +
                      here.member_rounds.size() + 2 * here.transfers.size();
  CHECK(lines["type: TYPE_SLICE_BEGIN"] == slices);
  CHECK(lines["type: TYPE_SLICE_END"] == slices);
  CHECK(lines["flow_ids"] == here.transfers.size());
  CHECK(lines["terminating_flow_ids"] == here.transfers.size());
  CHECK(lines["double_counter_value"] == lines["type: TYPE_COUNTER"]);
  CHECK(told.text == "trace.pftrace: " + std::to_string(slices) + " slices of 4 hosts\n");
}

TEST_CASE("export --tensorboard has records with right checksums; scalars and texts") {
  CHECK(crc32c("123456789") == 0xe3069283U); // RFC 3720
  run_folder here;
  REQUIRE(run_program(here.path, "export r --tensorboard tb").status == 0);
  const auto bytes = here.read("tb/events.out.tfevents.0000000000.shoal");
  const auto masked = [](std::string_view of) { return std::rotr(crc32c(of), 15) + 0xa282ead8U; };
  std::map<std::string, std::vector<std::pair<std::uint64_t, float>>> scalars;
  std::map<std::string, std::string> texts;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto size = little(bytes, at, 8);
    REQUIRE(little(bytes, at + 8, 4) == masked(bytes.substr(at, 8)));
    const auto data = bytes.substr(at + 12, size);
    REQUIRE(little(bytes, at + 12 + size, 4) == masked(data));
    const message event(data);
    if (at == 0) CHECK(event.text(3) == "brain.Event:2");
    at += 16 + size;
    if (!event.texts.contains(5)) continue;
    const message value(message(event.text(5)).text(1));
    if (value.numbers.contains(2))
      scalars[value.text(1)].emplace_back(
          event.number(2), std::bit_cast<float>(static_cast<std::uint32_t>(value.number(2))));
    else {
      CHECK(message(message(value.text(9)).text(1)).text(1) == "text");
      texts[value.text(1)] = message(value.text(8)).text(8);
    }
  }
  CHECK(texts["run.yaml"] == "```\n" + here.read("r/run.yaml") + "\n```");
  CHECK(texts.contains("summary.json"));
  const auto rows = here.table("r/metrics.csv");
  REQUIRE(rows[0][2] == "samples");
  const auto& samples = scalars["run/samples"];
  REQUIRE(samples.size() == rows.size() - 1);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    CHECK(std::to_string(samples[i].first) == rows[i + 1][1]);
    CHECK(samples[i].second == std::stof(rows[i + 1][2]));
  }
}

TEST_CASE("export --csv and --openmetrics have what the run logged") {
  run_folder here;
  REQUIRE(run_program(here.path, "export r --csv tables --openmetrics m.txt").status == 0);
  CHECK(here.table("tables/phases.csv").size() == here.phases.size() + 1);
  CHECK(here.table("tables/rounds.csv").size() == here.rounds.size() + 1);
  CHECK(here.table("tables/member_rounds.csv").size() == here.member_rounds.size() + 1);
  CHECK(here.table("tables/faults.csv").size() == here.faults.size() + 1);
  const auto transfers = here.table("tables/transfers.csv");
  REQUIRE(transfers.size() == here.transfers.size() + 1);
  for (std::size_t i = 0; i < here.transfers.size(); ++i) {
    CHECK(transfers[i + 1][0] == std::to_string(here.transfers[i].number));
    CHECK(transfers[i + 1][4] == std::to_string(here.transfers[i].bytes));
  }
  std::istringstream in(here.read("m.txt"));
  std::set<std::string> families;
  std::string last, family;
  std::size_t samples = 0;
  for (std::string line; std::getline(in, line); last = line) {
    if (line.starts_with("# TYPE ")) {
      family = line.substr(7, line.find(' ', 7) - 7);
      CHECK(families.insert(family).second); // families are not interleaved
      CHECK((!family.ends_with("_total")));
    } else if (!line.starts_with('#')) {
      CHECK(line.starts_with(family));
      samples += line.starts_with("shoal_samples_total ");
    }
  }
  CHECK(last == "# EOF");
  CHECK(samples == here.table("r/metrics.csv").size() - 1);
}

TEST_CASE("export --pcapng has the bytes of each transfer and message between their hosts") {
  run_folder here;
  REQUIRE(run_program(here.path, "export r --pcapng p.pcapng").status == 0);
  const auto bytes = here.read("p.pcapng");
  std::map<std::string, std::string> names; // by address
  std::map<std::pair<std::string, std::string>, std::uint64_t> sent;
  std::map<std::uint64_t, std::uint64_t> of_transfer;
  std::uint64_t last = 0;
  std::vector<std::uint64_t> types;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto type = little(bytes, at, 4), size = little(bytes, at + 4, 4);
    REQUIRE(size % 4 == 0);
    REQUIRE(little(bytes, at + size - 4, 4) == size);
    const std::string_view body(bytes.data() + at + 8, size - 12);
    at += size;
    types.push_back(type);
    if (type == 4)
      for (std::size_t record = 0; little(body, record, 2) == 1;) {
        const auto length = little(body, record + 2, 2);
        names[std::string(body.substr(record + 4, 4))] = body.substr(record + 8, length - 5);
        record += 4 + (length + 3) / 4 * 4;
      }
    if (type != 6) continue;
    const auto time = little(body, 4, 4) << 32 | little(body, 8, 4);
    CHECK(time >= last);
    last = time;
    const auto length = little(body, 16, 4);
    REQUIRE(little(body, 12, 4) == 40);
    const auto packet = body.substr(20, 40);
    REQUIRE(big(packet, 2, 2) == length);
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < 20; i += 2) sum += big(packet, i, 2);
    CHECK((sum & 0xffff) + (sum >> 16) == 0xffff); // the checksum of the IP header
    const std::string comment(body.substr(64, little(body, 62, 2)));
    sent[{names.at(std::string(packet.substr(12, 4))),
          names.at(std::string(packet.substr(16, 4)))}] += length - 40;
    if (const auto found = comment.find("transfer "); found != std::string::npos)
      of_transfer[std::stoull(comment.substr(found + 9))] += length - 40;
  }
  REQUIRE(types.size() > 3);
  CHECK(types[0] == 0x0a0d0d0a);
  CHECK(types[1] == 1);
  std::map<std::pair<std::string, std::string>, std::uint64_t> expected;
  std::set<std::tuple<std::string, std::string, std::int64_t>> bulk;
  const auto host = [](const std::string& actor) { return actor.substr(0, actor.find('#')); };
  REQUIRE(of_transfer.size() == here.transfers.size());
  for (const auto& each : here.transfers) {
    CHECK(of_transfer[each.number] == each.bytes);
    expected[{host(each.from), host(each.to)}] += each.bytes;
    bulk.emplace(each.from, each.to, each.sent.count());
  }
  for (const auto& each : here.messages)
    if (!bulk.contains({each["from"], each["to"], each["sent_ns"]}))
      expected[{host(each["from"]), host(each["to"])}] += each["bytes"].get<std::uint64_t>();
  CHECK(sent == expected);
}

TEST_CASE("export says what is missing") {
  run_folder here;
  auto nothing = run_program(here.path, "export r");
  CHECK(nothing.status == 2);
  CHECK(nothing.has("nothing to write: --out PATH writes the model; the history: --perfetto"));
  auto nowhere = run_program(here.path, "export none --perfetto t");
  CHECK(nowhere.status == 1);
  CHECK(nowhere.text == "error: no such directory: 'none'\n");
  auto unwritable = run_program(here.path, "export r --pcapng no/such/place");
  CHECK(unwritable.status == 1);
  CHECK(unwritable.has("'no/such/place' cannot be written: No such file or directory"));
}

TEST_CASE("a scenario with record.export has the exports of its run, and the same history") {
  run_folder here;
  auto text = here.read("s.yaml");
  const auto record = text.find("record: {events: all}");
  REQUIRE(record != std::string::npos);
  text.replace(record, std::string::npos,
               "name: s\nrecord: {events: all, export: [perfetto, tensorboard, csv, openmetrics, "
               "pcapng], export_every: 2s}\n");
  std::ofstream(here.path / "x.yaml") << text;
  const auto run = run_program(here.path, "run x.yaml -q --out x");
  REQUIRE_MESSAGE(run.status == 0, run.text);
  const auto hash = [&](const char* file) {
    return nlohmann::json::parse(here.read(file)).at("event_hash").get<std::string>();
  };
  CHECK(hash("x/summary.json") == hash("r/summary.json"));
  REQUIRE(run_program(here.path, "export x --perfetto a --tensorboard b --csv c --openmetrics d "
                                 "--pcapng e")
              .status == 0);
  const std::string event_file = "/events.out.tfevents.0000000000.shoal";
  for (const auto& [first, second] : {std::pair<std::string, std::string>{"run.pftrace", "a"},
                                      {"tensorboard" + event_file, "b" + event_file},
                                      {"tables/rounds.csv", "c/rounds.csv"},
                                      {"tables/transfers.csv", "c/transfers.csv"},
                                      {"metrics.txt", "d"},
                                      {"run.pcapng", "e"}}) {
    // A lambda of clang 14, as CHECK_MESSAGE has one, takes no structured binding.
    const std::string &of_run = first, &of_command = second;
    CHECK(here.read("x/export/" + of_run).size() > 100);
    CHECK_MESSAGE(here.read("x/export/" + of_run) == here.read(of_command), of_run);
  }
  // A run without a directory has no place for exports, and says so.
  CHECK(run_program(here.path, "run x.yaml -q").has("record.export: without --out DIR nothing"));
}

TEST_CASE("an export that fails while the run goes on warns once and does not end the run") {
  scratch_folder here;
  record_options what;
  what.exports = {export_kind::csv};
  what.export_every = std::chrono::seconds(2);
  live_export exports(what, here.path); // a folder without a run
  const int kept = dup(STDERR_FILENO);
  const std::string said = (here.path / "said").string();
  std::fflush(stderr);
  REQUIRE(std::freopen(said.c_str(), "w", stderr) != nullptr);
  std::string first;
  for (const int second : {2, 4, 6}) {
    const bool due = exports.due(std::chrono::seconds(second));
    const auto done = exports.write();
    if (first.empty() && due && !done) first = done.error();
  }
  const auto at_the_end = exports.write();
  std::fflush(stderr);
  dup2(kept, STDERR_FILENO);
  close(kept);
  CHECK(first.starts_with("record.export: "));
  std::ifstream file(said);
  CHECK(std::string(std::istreambuf_iterator<char>(file), {}) ==
        "warning: " + first + "; the run goes on, and tries again every 2s\n");
  CHECK_FALSE(at_the_end.ok());
}

TEST_CASE("the formats of record.export are those of shoal export") {
  const auto names = names_of(export_kind{});
  REQUIRE(names.size() == export_formats().size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    CHECK(static_cast<std::size_t>(names[i].first) == i);
    CHECK(names[i].second == export_formats()[i].name);
  }
}

TEST_CASE("record.export refuses unknown formats, formats named twice, and times without formats") {
  run_folder here;
  const auto refused = [&](const std::string& record, const std::string& why) {
    auto text = here.read("s.yaml");
    text.replace(text.find("record: {events: all}"), std::string::npos, record + "\n");
    std::ofstream(here.path / "wrong.yaml") << text;
    const auto checked = run_program(here.path, "check wrong.yaml");
    CHECK(checked.status == 1);
    CHECK_MESSAGE(checked.has(why), checked.text);
  };
  refused("record: {export: [perfeto]}", "did you mean 'perfetto'?");
  refused("record: {export: [csv, perfetto, csv]}", "this format is in the list already");
  refused("record: {export_every: 1min}", "nothing is exported");
}
