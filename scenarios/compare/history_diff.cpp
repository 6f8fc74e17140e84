#include "scenarios/compare/history_diff.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/json_text.hpp"
#include "kernels/base/units.hpp"
#include "scenarios/observe/event_log.hpp"
#include "scenarios/observe/output_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <deque>

namespace shoal::scenarios {

namespace {

using json = nlohmann::ordered_json;

/// Whether the line occurs only in a log of all events. Such lines begin with these keys.
bool is_fine(std::string_view line) {
  const std::size_t at = line.find(R"("what":")");
  if (at == std::string_view::npos) return false;
  const std::string_view what = line.substr(at + 8);
  return what.starts_with("message\"") || what.starts_with("timer\"") || what.starts_with("down\"");
}

/// Whether the line is the begin or the end of a fault. The comparison skips such a line: not the
/// fault itself but its effects are events of history.
bool is_fault(std::string_view line) {
  return line.find(R"("what":"fault_)") != std::string_view::npos;
}

class side {
public:
  side(event_log_reader reader, bool coarse) : reader_(std::move(reader)), coarse_(coarse) {}

  result<bool> next(std::string& line) {
    for (;;) {
      auto more = reader_.next(line);
      if (!more || !*more || (!(coarse_ && is_fine(line)) && !is_fault(line))) return more;
    }
  }

private:
  event_log_reader reader_;
  bool coarse_;
};

result<void> rest(side& of, bool more, std::string line, std::vector<std::string>& into) {
  while (more) {
    into.push_back(line);
    if (into.size() == context_events) break;
    auto next = of.next(line);
    if (!next) return failure{next.error()};
    more = *next;
  }
  return {};
}

std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>() : json_text(value);
}

/// Shortens an actor's name: 'home-3#0/2' becomes 'home-3/2', 'home-3#1' becomes 'home-3 (start
/// 2)'. Most hosts start once.
std::string actor_words(const std::string& name) {
  const std::size_t hash = name.rfind('#');
  if (hash == std::string::npos) return name == "-" ? "nobody" : name;
  const std::size_t slash = std::min(name.find('/', hash), name.size());
  const std::string incarnation = name.substr(hash + 1, slash - hash - 1),
                    ordinal = name.substr(slash);
  if (incarnation == "0") return name.substr(0, hash) + ordinal;
  return fmt::format("{}{} (incarnation {})", name.substr(0, hash), ordinal, incarnation);
}

std::string field(const json& event, const char* key) {
  const auto found = event.find(key);
  return found == event.end() ? "?" : text_of(*found);
}

} // namespace

result<std::optional<divergence>> diff_histories(const std::filesystem::path& a,
                                                 const std::filesystem::path& b, bool coarse) {
  auto reader_a = event_log_reader::open(a);
  if (!reader_a) return failure{reader_a.error()};
  auto reader_b = event_log_reader::open(b);
  if (!reader_b) return failure{reader_b.error()};
  side left(std::move(*reader_a), coarse), right(std::move(*reader_b), coarse);
  divergence out;
  std::deque<std::string> before;
  for (std::string line_a, line_b;;) {
    auto more_a = left.next(line_a);
    if (!more_a) return failure{more_a.error()};
    auto more_b = right.next(line_b);
    if (!more_b) return failure{more_b.error()};
    if (!*more_a && !*more_b) return std::optional<divergence>{};
    if (*more_a && *more_b && line_a == line_b) {
      ++out.common;
      before.push_back(std::move(line_a));
      if (before.size() > context_events) before.pop_front();
      continue;
    }
    out.before.assign(before.begin(), before.end());
    if (auto done = rest(left, *more_a, line_a, out.a); !done) return failure{done.error()};
    if (auto done = rest(right, *more_b, line_b, out.b); !done) return failure{done.error()};
    return std::optional(std::move(out));
  }
}

std::string event_words(std::string_view line) {
  const json event = try_json<json>(line);
  if (!event.is_object() || !event.contains("what")) return std::string(line);
  const std::string what = field(event, "what");
  if (what == "host_started" || what == "host_killed")
    return fmt::format("{} was {}", actor_words(field(event, "host")),
                       what == "host_killed" ? "killed" : "started");
  if (what == "timer")
    return fmt::format("{} had a timer, {}", actor_words(field(event, "to")), field(event, "type"));
  if (what == "down")
    return fmt::format("{} learnt that {} is gone", actor_words(field(event, "to")),
                       actor_words(field(event, "from")));
  if (what == "message") {
    std::string sent;
    if (const auto at = event.find("sent_ns"); at != event.end() && at->is_number_integer())
      sent = ", sent at " + time_text(duration(at->get<std::int64_t>()));
    return fmt::format("{} got {} ({} B) from {}{}", actor_words(field(event, "to")),
                       field(event, "type"), field(event, "bytes"),
                       actor_words(field(event, "from")), sent);
  }
  std::string out = fmt::format("{}: {}", actor_words(field(event, "host")), what);
  for (const auto& [key, value] : event.items())
    if (key != "time_ns" && key != "host" && key != "what")
      out += fmt::format(" {}={}", key, text_of(value));
  return out;
}

std::string event_time(std::string_view line) {
  const json event = try_json<json>(line);
  if (!event.is_object() || !event.contains("time_ns") || !event["time_ns"].is_number_integer())
    return {};
  return time_text(duration(event["time_ns"].get<std::int64_t>()));
}

std::string host_changed(std::string_view line) {
  const json event = try_json<json>(line);
  if (!event.is_object()) return {};
  const std::string what = field(event, "what");
  if (what != "host_started" && what != "host_killed") return {};
  const std::string host = field(event, "host");
  return host.substr(0, host.rfind('#'));
}

first_event first_effect(const divergence& at) {
  SHOAL_CHECK(!at.a.empty() || !at.b.empty(), "a divergence with nothing on either side");
  if (at.a.empty() || at.b.empty())
    return at.a.empty() ? first_event{true, at.b.front()} : first_event{false, at.a.front()};
  const auto time = [](const std::string& line) {
    const json event = try_json<json>(line);
    const bool known =
        event.is_object() && event.contains("time_ns") && event["time_ns"].is_number_integer();
    return known ? event["time_ns"].get<std::int64_t>() : 0;
  };
  const auto time_a = time(at.a.front()), time_b = time(at.b.front());
  const bool in_b = time_a != time_b ? time_b < time_a : host_changed(at.a.front()).empty();
  return {in_b, in_b ? at.b.front() : at.a.front()};
}

} // namespace shoal::scenarios
