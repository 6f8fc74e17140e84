// A trace for ui.perfetto.dev: TrackEvent packets in Protocol Buffers.
//   process of a host:  phases, rounds of its member, lanes of what it sends and receives
//   process 'swarm':    rounds, faults, and a counter for each column of metrics.csv
// A transfer is a slice at its sender and a slice at its receiver, with a flow arrow between them.
// Slices of one track may not overlap, so transfers at the same time take several lanes.
// Source: the numbers of fields and the meaning of tracks are those of protos/perfetto/trace
// (trace_packet.proto, track_event/*.proto) of the Perfetto project.
#include "scenarios/export/export_formats.hpp"
#include "scenarios/export/protobuf.hpp"
#include "scenarios/observe/run_directory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace shoal::scenarios {

// A format may name its parts as other formats name theirs.
namespace perfetto_format_parts {
namespace {

/// More processes than these make the viewer slow, so a larger swarm is sampled.
constexpr std::size_t most_hosts = 1000;

enum class event_type : std::uint64_t { slice_begin = 1, slice_end = 2, counter = 4 };

struct slice {
  std::string name;
  duration begin{}, end{};
  std::vector<std::pair<const char*, std::variant<std::string, std::uint64_t>>> notes{};
  std::uint64_t flow = 0; ///< 0: none
  bool flow_ends = false;
};

class trace_writer {
public:
  std::uint64_t process(const std::string& name) {
    const auto pid = ++processes_;
    protobuf_message described, track;
    described.varint(1, pid).bytes(6, name);
    track.varint(1, ++tracks_).inner(3, described);
    describe(track);
    return tracks_;
  }

  std::uint64_t track(const std::string& name, std::uint64_t parent) {
    protobuf_message made;
    made.varint(1, ++tracks_).bytes(2, name).varint(5, parent);
    describe(made);
    return tracks_;
  }

  std::uint64_t counter_track(const std::string& name, std::uint64_t parent) {
    protobuf_message made;
    made.varint(1, ++tracks_).bytes(2, name).varint(5, parent).inner(8, protobuf_message{});
    describe(made);
    return tracks_;
  }

  /// Writes slices on as few tracks as keep them apart. Sorts `slices`.
  void lanes(const std::string& name, std::uint64_t parent, std::vector<slice>& slices) {
    std::stable_sort(slices.begin(), slices.end(),
                     [](const slice& a, const slice& b) { return a.begin < b.begin; });
    std::vector<std::pair<std::uint64_t, duration>> open; // track and the end of its last slice
    for (const auto& each : slices) {
      auto lane = std::find_if(open.begin(), open.end(),
                               [&](const auto& used) { return used.second <= each.begin; });
      if (lane == open.end()) {
        const auto label = open.empty() ? name : fmt::format("{} {}", name, open.size() + 1);
        open.emplace_back(track(label, parent), duration{});
        lane = open.end() - 1;
      }
      lane->second = each.end;
      write(each, lane->first);
    }
  }

  void count(std::uint64_t track, duration at, double value) {
    protobuf_message event;
    event.varint(9, static_cast<std::uint64_t>(event_type::counter)).varint(11, track);
    event.real(44, value);
    packet(at, event);
  }

  const std::string& text() const { return out_; }
  std::uint64_t slices() const { return slices_; }

private:
  void write(const slice& what, std::uint64_t track) {
    protobuf_message begin, end;
    for (const auto& [key, value] : what.notes) {
      protobuf_message note;
      if (const auto* number = std::get_if<std::uint64_t>(&value))
        note.varint(3, *number);
      else
        note.bytes(6, std::get<std::string>(value));
      note.bytes(10, key);
      begin.inner(4, note);
    }
    begin.varint(9, static_cast<std::uint64_t>(event_type::slice_begin)).varint(11, track);
    begin.bytes(23, what.name);
    if (what.flow > 0) begin.fixed64(what.flow_ends ? 48 : 47, what.flow);
    packet(what.begin, begin);
    end.varint(9, static_cast<std::uint64_t>(event_type::slice_end)).varint(11, track);
    packet(what.end, end);
    ++slices_;
  }

  void describe(const protobuf_message& track) {
    protobuf_message made;
    made.varint(10, 1).inner(60, track);
    if (out_.empty()) made.varint(13, 1); // the first packet begins the sequence
    out_ += protobuf_message{}.inner(1, made).text();
  }

  void packet(duration at, const protobuf_message& event) {
    protobuf_message made;
    made.varint(8, static_cast<std::uint64_t>(at.count())).varint(10, 1).inner(11, event);
    out_ += protobuf_message{}.inner(1, made).text();
  }

  std::string out_;
  std::uint64_t tracks_ = 0, processes_ = 0, slices_ = 0;
};

void write_swarm(const recorded_run& run, trace_writer& out) {
  const auto swarm = out.process("swarm " + run.name);
  std::vector<slice> rounds, faults;
  for (const auto& each : run.rounds)
    rounds.push_back({fmt::format("epoch {}: {}", each.epoch, each.outcome),
                      each.begin,
                      each.end,
                      {{"group", each.group},
                       {"reason", each.reason},
                       {"members", each.members},
                       {"samples", each.samples}}});
  for (const auto& each : run.faults)
    faults.push_back({each.action,
                      each.begin,
                      each.end,
                      {{"hosts", fmt::format("{}", fmt::join(each.hosts, ", "))}}});
  out.lanes("rounds", swarm, rounds);
  out.lanes("faults", swarm, faults);
  for (std::size_t i = 1; i < run.metrics.columns.size(); ++i) {
    const auto track = out.counter_track(run.metrics.columns[i], swarm);
    for (const auto& row : run.metrics.rows)
      if (row[0] && row[i]) out.count(track, from_seconds(*row[0]), *row[i]);
  }
}

result<std::string> write(const recorded_run& run, const std::filesystem::path& to) {
  trace_writer out;
  write_swarm(run, out);
  struct of_host {
    std::vector<slice> phases, rounds, sends, receives;
  };
  // Every n-th host keeps hosts of all groups, because groups are consecutive.
  const std::size_t step = (run.hosts.size() + most_hosts - 1) / most_hosts;
  std::vector<of_host> hosts(run.hosts.size());
  const auto kept = [&](std::size_t host) { return host % std::max<std::size_t>(step, 1) == 0; };
  for (const auto& each : run.phases)
    if (kept(each.host))
      hosts[each.host].phases.push_back({each.what, each.begin, each.end, {{"epoch", each.epoch}}});
  for (const auto& each : run.member_rounds)
    if (kept(each.host))
      hosts[each.host].rounds.push_back({fmt::format("epoch {}: {}", each.epoch, each.what),
                                         each.begin,
                                         each.end,
                                         {{"group", each.group}, {"reason", each.reason}}});
  for (const auto& each : run.transfers) {
    const auto from = run.host_of(each.from), to_host = run.host_of(each.to);
    if (!kept(from) || !kept(to_host)) continue;
    hosts[from].sends.push_back({fmt::format("{} to {}", each.type, run.hosts[to_host]),
                                 each.begun,
                                 each.left,
                                 {{"transfer", each.number}, {"bytes", each.bytes}},
                                 each.number});
    hosts[to_host].receives.push_back({fmt::format("{} from {}", each.type, run.hosts[from]),
                                       each.left,
                                       std::max(each.left, each.arrives),
                                       {{"transfer", each.number}, {"bytes", each.bytes}},
                                       each.number,
                                       true});
  }
  for (std::size_t i = 0; i < run.hosts.size(); ++i) {
    if (!kept(i)) continue;
    const auto process = out.process(run.hosts[i]);
    out.lanes("phase", process, hosts[i].phases);
    out.lanes("averaging", process, hosts[i].rounds);
    out.lanes("sending", process, hosts[i].sends);
    out.lanes("receiving", process, hosts[i].receives);
  }
  if (auto written = write_file(to, out.text()); !written) return failure{written.error()};
  return fmt::format("{} slices of {} hosts{}", out.slices(), run.hosts.size(),
                     step > 1 ? fmt::format("; transfers and phases of every {}. host", step) : "");
}

} // namespace
} // namespace perfetto_format_parts

export_format perfetto_format() {
  using namespace perfetto_format_parts;
  return {"perfetto", "FILE",
          "a trace for ui.perfetto.dev: hosts, rounds, faults, transfers with arrows, counters",
          "run.pftrace", write};
}

} // namespace shoal::scenarios
