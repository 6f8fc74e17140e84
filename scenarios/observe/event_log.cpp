#include "scenarios/observe/event_log.hpp"

#include "actors/averaging/observations.hpp"
#include "actors/data/observations.hpp"
#include "actors/data/sample_ranges.hpp"
#include "actors/reachability/observations.hpp"
#include "actors/reasons.hpp"
#include "actors/training/observations.hpp"
#include "kernels/base/check.hpp"
#include "kernels/base/rng.hpp"
#include "scenarios/observe/output_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <span>

namespace shoal::scenarios {

std::vector<std::uint32_t> sample_machines(std::uint64_t seed, std::vector<std::uint32_t> machines,
                                           std::uint64_t count) {
  if (count != 0 && count < machines.size()) {
    rng draw = stream(seed, "record.peers");
    draw.shuffle(std::span(machines));
    machines.resize(count);
  }
  std::sort(machines.begin(), machines.end());
  return machines;
}

event_log::event_log(std::unique_ptr<output_file> file, event_detail detail, host_names& names,
                     bool everyone, const std::vector<std::uint32_t>& machines, observed_view view)
    : lines_(std::move(file)), detail_(detail), names_(names), everyone_(everyone), view_(view),
      machines_(machines.begin(), machines.end()) {}

event_log::~event_log() = default;

bool event_log::watched(const netem::endpoint& where) {
  return where.host != netem::no_host && watched(names_.of(where.host).machine);
}

void event_log::on_event(const netem::delivered_event& event) {
  using netem::event_kind;
  if (detail_ == event_detail::none) return;
  const bool about_host =
      event.kind == event_kind::host_started || event.kind == event_kind::host_killed;
  if (!about_host && detail_ != event_detail::all) return;
  if (!everyone_ && !watched(event.from) && !watched(event.to)) return;

  std::string& out = current_;
  out.clear();
  auto into = std::back_inserter(out);
  const auto time = event.time.count();
  switch (event.kind) {
  case event_kind::host_started:
  case event_kind::host_killed:
    fmt::format_to(into, R"({{"time_ns":{},"what":"{}","host":{}}})", time,
                   event.kind == event_kind::host_started ? "host_started" : "host_killed",
                   json_quoted(names_.host(event.to.host)));
    break;
  case event_kind::timer:
    fmt::format_to(into, R"({{"time_ns":{},"what":"timer","to":{},"type":{}}})", time,
                   json_quoted(names_.actor(event.to)), json_quoted(event.type));
    break;
  case event_kind::down:
    fmt::format_to(into, R"({{"time_ns":{},"what":"down","from":{},"to":{}}})", time,
                   json_quoted(names_.actor(event.from)), json_quoted(names_.actor(event.to)));
    break;
  case event_kind::message:
    fmt::format_to(
        into,
        R"({{"time_ns":{},"what":"message","sent_ns":{},"from":{},"to":{},"type":{},"bytes":{}}})",
        time, event.sent.count(), json_quoted(names_.actor(event.from)),
        json_quoted(names_.actor(event.to)), json_quoted(event.type), event.wire_bytes);
    break;
  }
  lines_.line(out);
}

void event_log::on_fault(duration time, std::size_t number, const char* action, bool begins,
                         const std::vector<std::string>& hosts) {
  if (detail_ == event_detail::none) return;
  std::string list;
  for (const std::string& host : hosts) list += (list.empty() ? "" : ",") + json_quoted(host);
  lines_.line(fmt::format(R"({{"time_ns":{},"what":"{}","fault":{},"action":"{}","hosts":[{}]}})",
                          time.count(), begins ? "fault_begins" : "fault_ends", number, action,
                          list));
}

namespace {

/// The machine in a peer's id, as world::peer_id_of makes it.
std::uint32_t machine_of(actors::peer_id peer) {
  return static_cast<std::uint32_t>((peer >> 16) - 1);
}

/// The members whose data is in at least one part, as a field that follows another field:
/// ',"senders":[0,2]'.
std::string senders_of(const std::vector<actors::part_outcome>& parts) {
  std::set<std::uint32_t> senders;
  for (const actors::part_outcome& part : parts)
    if (part.begin != part.end) senders.insert(part.senders.begin(), part.senders.end());
  return fmt::format(R"(,"senders":[{}])", fmt::join(senders, ","));
}

/// The fields of a line after "what"; empty if the observation has no line.
struct describe {
  observed_view view;

  std::string operator()(const actors::contributed& x) const {
    if (view == observed_view::whole) return {};
    return fmt::format(
        R"("epoch":{},"group":"{}","member":{},"members":{},"weight":{},"samples":{},"takes":{},"first_of_two":{})",
        x.epoch, x.group.hex(), x.member, x.members, x.weight, actors::index_count(x.samples),
        x.takes, x.first_of_two);
  }
  std::string operator()(const actors::round_ended& x) const {
    std::size_t incomplete = 0;
    for (const actors::part_outcome& part : x.parts)
      incomplete += part.begin != part.end && part.senders.size() < x.members ? 1 : 0;
    return fmt::format(
        R"("epoch":{},"group":"{}","member":{},"members":{},"outcome":"{}","reason":"{}","parts":{},"parts_incomplete":{},"started_ns":{}{})",
        x.epoch, x.group.hex(), x.member, x.members, actors::to_string(x.outcome),
        actors::to_string(x.reason), x.parts.size(), incomplete, x.started_ns,
        view == observed_view::whole ? "" : senders_of(x.parts));
  }
  std::string operator()(const actors::stepped& x) const {
    return fmt::format(R"("epoch":{},"before":"{}","after":"{}","group":"{}")", x.epoch,
                       x.before.hex(), x.after.hex(), x.group.hex());
  }
  std::string operator()(const actors::adopted& x) const {
    return fmt::format(R"("epoch":{},"state":"{}","bytes":{})", x.epoch, x.state.hex(), x.bytes);
  }
  std::string operator()(const actors::download_ended& x) const {
    return fmt::format(R"("of":"{}","epoch":{},"reason":"{}","bytes":{},"rejected":{},"donors":{})",
                       x.step ? "step" : "state", x.epoch, actors::to_string(x.reason), x.bytes,
                       x.rejected, x.donors);
  }
  std::string operator()(const actors::phase_changed& x) const {
    return fmt::format(R"("phase":"{}","epoch":{},"state":"{}")", phase_name(x.phase), x.epoch,
                       x.state.hex());
  }
  std::string operator()(const actors::misbehaved& x) const {
    return fmt::format(R"("culprit":{},"why":{})", x.culprit, json_quoted(x.why));
  }
  std::string operator()(const actors::reach_learned& x) const {
    return fmt::format(R"("reach":"{}")", actors::to_string(x.reach));
  }
  std::string operator()(const actors::samples_reported& x) const {
    return fmt::format(R"("peer":{},"epoch":{},"why":{},"samples":"{}")", x.peer, x.epoch,
                       json_quoted(x.why), ranges_text(x.samples));
  }
};

using field_writers = actors::observation_handlers<std::string, observed_view>;

template <class... Observed>
field_writers writers_of() {
  field_writers out;
  (out.template on<Observed>(
       [](const Observed& what, observed_view view) { return describe{view}(what); }),
   ...);
  return out;
}

/// The fields of an observation. A type without a writer here writes its own fields.
std::string fields_of(const actors::observation& what, observed_view view) {
  static const field_writers writers =
      writers_of<actors::contributed, actors::round_ended, actors::stepped, actors::adopted,
                 actors::download_ended, actors::phase_changed, actors::misbehaved,
                 actors::reach_learned, actors::samples_reported>();
  if (writers.knows(what)) return writers(what, view);
  const auto own = what.type().logged_fields;
  return own == nullptr ? std::string() : own(what.address());
}

} // namespace

void event_log::on_observation(duration time, std::optional<std::uint32_t> machine,
                               std::string_view host, const actors::observation& what) {
  if (detail_ == event_detail::none || (machine && !watched(*machine))) return;
  const std::string fields = fields_of(what, view_);
  if (fields.empty()) return;
  lines_.line(fmt::format(R"({{"time_ns":{},"host":{},"what":"{}",{}}})", time.count(),
                          json_quoted(host), what.name(), fields));
}

void event_log::on_round(const swarm_round& what) {
  if (detail_ == event_detail::none || view_ == observed_view::local || what.unfinished) return;
  const bool logged = everyone_ || std::any_of(what.members.begin(), what.members.end(),
                                               [&](const round_member& who) {
                                                 return who.known && watched(machine_of(who.peer));
                                               });
  if (!logged) return;
  lines_.line(fmt::format(
      R"({{"time_ns":{},"what":"round","epoch":{},"group":"{}","members":{},"outcome":"{}","reason":"{}","started_ns":{},"first_of_two":{},"samples":{}}})",
      what.ended.count(), what.epoch, what.group.hex(), what.members.size(),
      actors::to_string(what.outcome), actors::to_string(what.reason), what.started.count(),
      what.first_of_two, samples_included(what)));
}

void event_log::flush() {
  lines_.flush();
}

const std::optional<failure>& event_log::error() const noexcept {
  return lines_.error();
}

result<void> event_log::close() {
  return lines_.close();
}

struct event_log_reader::state {
  std::filesystem::path path;
  std::FILE* file = nullptr;
  ZSTD_DCtx* context = ZSTD_createDCtx();
  std::vector<char> in = std::vector<char>(ZSTD_DStreamInSize());
  std::vector<char> out = std::vector<char>(ZSTD_DStreamOutSize());
  ZSTD_inBuffer source{in.data(), 0, 0};
  std::string text; // decompressed text; the reader has returned everything before `at`
  std::size_t at = 0;
  bool frame_open = true; // an empty file counts as cut off

  ~state() {
    if (file != nullptr) std::fclose(file);
    ZSTD_freeDCtx(context);
  }

  failure damaged(std::string_view why) const {
    return failure{fmt::format("cannot read '{}': {}", path.string(), why)};
  }

  /// Decompresses the next part. Returns false at the end of the file.
  result<bool> more() {
    if (source.pos == source.size) {
      source = {in.data(), std::fread(in.data(), 1, in.size(), file), 0};
      if (source.size == 0) {
        if (std::ferror(file) != 0) return damaged(std::strerror(errno));
        if (frame_open) return damaged("it is cut off");
        return false;
      }
    }
    ZSTD_outBuffer room{out.data(), out.size(), 0};
    const std::size_t left = ZSTD_decompressStream(context, &room, &source);
    if (ZSTD_isError(left)) return damaged(ZSTD_getErrorName(left));
    frame_open = left != 0;
    text.erase(0, at);
    at = 0;
    text.append(out.data(), room.pos);
    return true;
  }
};

event_log_reader::event_log_reader(std::unique_ptr<state> s) : state_(std::move(s)) {}
event_log_reader::event_log_reader(event_log_reader&&) noexcept = default;
event_log_reader& event_log_reader::operator=(event_log_reader&&) noexcept = default;
event_log_reader::~event_log_reader() = default;

result<event_log_reader> event_log_reader::open(const std::filesystem::path& path) {
  auto s = std::make_unique<state>();
  s->path = path;
  s->file = std::fopen(path.c_str(), "rbe");
  if (s->file == nullptr) return s->damaged(std::strerror(errno));
  return event_log_reader(std::move(s));
}

result<bool> event_log_reader::next(std::string& line) {
  for (;;) {
    const std::size_t end = state_->text.find('\n', state_->at);
    if (end != std::string::npos) {
      line.assign(state_->text, state_->at, end - state_->at);
      state_->at = end + 1;
      return true;
    }
    auto more = state_->more();
    if (!more) return more;
    if (!*more)
      return state_->at < state_->text.size()
                 ? result<bool>(state_->damaged("its last line is cut off"))
                 : result<bool>(false);
  }
}

} // namespace shoal::scenarios
