#include "kernels/base/json_text.hpp"
#include "netem/trace_readers.hpp"
#include "netem/trace_text.hpp"

#include <nlohmann/json.hpp>

#include <map>

namespace shoal::netem {
namespace {

using namespace trace_text;
using nlohmann::json;

constexpr std::size_t most_nesting = 64;

class events_reader : reader {
public:
  events_reader(std::istream& in, const std::string& unit) : reader(in, unit, longest_event_line) {}

  trace_result read() {
    bool any = false;
    while (out_.problems.size() < most_trace_problems && lines_.next()) {
      if (lines_.too_long) {
        problem({lines_.text, 1}, fmt::format("a line of more than {} bytes", longest_));
        continue;
      }
      if (trimmed(lines_.text, 1).text.empty()) continue;
      any = true;
      line();
    }
    if (!any && out_.problems.empty())
      problem({}, "empty: expected lines '[ms, \"add\", {\"nodes\": [...]}]'");
    if (out_.problems.empty()) build();
    return std::move(out_);
  }

private:
  /// The place of `text` in the line, after `from`.
  field place(const std::string& text, std::size_t from = 0) const {
    const std::size_t at = lines_.text.find(text, from);
    return at == std::string::npos
               ? field{lines_.text, 1}
               : field{std::string_view(lines_.text).substr(at, text.size()), at + 1};
  }

  /// The levels of nesting in the line. Brackets in names count, too.
  std::size_t nesting() const {
    std::size_t level = 0, most = 0;
    for (char c : lines_.text) {
      if (c == '[' || c == '{') most = std::max(most, ++level);
      if ((c == ']' || c == '}') && level > 0) --level;
    }
    return most;
  }

  /// Reads a number of the file as a time.
  std::optional<duration> number(const json& value, const char* name) {
    if (!value.is_number()) {
      problem({lines_.text, 1}, fmt::format("{}: expected a number", name));
      return std::nullopt;
    }
    // A plain decimal is parsed as text, which is exact.
    const std::string text = json_text(value);
    if (is_number(text)) return time({text, place(text).column}, name);
    const auto unit = parse_duration("1" + unit_);
    const double seconds = value.get<double>() * (unit ? to_seconds(*unit) : 1e-3);
    if (seconds >= 0 && seconds < 9e9) return from_seconds(seconds);
    problem(place(text), fmt::format("{}: {} is {}", name, in_quotes(text),
                                     seconds < 0 ? "negative" : "too long"));
    return std::nullopt;
  }

  void line() {
    if (nesting() > most_nesting)
      return problem({lines_.text, 1}, fmt::format("more than {} levels", most_nesting));
    json read;
    try {
      read = parse_json<json>(lines_.text);
    } catch (const json::parse_error& error) {
      return problem({{}, std::clamp<std::size_t>(error.byte, 1, lines_.text.size() + 1)},
                     "this is not JSON");
    } catch (const json::exception&) {
      return problem({lines_.text, 1}, "this is not JSON");
    }
    if (!read.is_array() || read.size() < 2 || !read[1].is_string() ||
        (read.size() > 2 && !read[2].is_object()))
      return problem({lines_.text, 1},
                     "expected '[ms, \"add\" or \"remove\", {\"nodes\": [...]}]'");
    const auto at = number(read[0], "time");
    if (!at) return;
    if (*at < now_)
      return problem(
          place(json_text(read[0])),
          fmt::format("out of order: the line before this one is at {}", to_string(now_)));
    now_ = *at;
    const json more = read.size() > 2 ? read[2] : json::object();
    const json nodes = more.value("nodes", json::array());
    if (!nodes.is_array() ||
        !std::all_of(nodes.begin(), nodes.end(), [](const json& name) { return name.is_string(); }))
      return problem(place("\"nodes\""), "'nodes' is a list of names");
    const std::string what = read[1];
    if (!nodes.empty() && what != "add" && what != "remove")
      return problem(
          place("\"" + what + "\""),
          fmt::format("{} with nodes: only 'add' and 'remove' have some", in_quotes(what)));
    std::size_t from = place("\"nodes\"").column;
    for (const json& name : nodes) {
      const field where = place(json_text(name), from);
      from = where.column;
      if (trimmed(std::string_view{name.get_ref<const std::string&>()}, 1).text.empty()) {
        problem(where, "the name of a node is empty");
        continue;
      }
      what == "add" ? add(name, where) : remove(name, where);
    }
    latest_ = now_;
    if (more.contains("duration"))
      if (const auto lasts = number(more["duration"], "duration")) {
        if (*lasts >= forever - now_)
          return problem(place("\"duration\""),
                         "duration: the node ends too late to be represented");
        latest_ = now_ + *lasts;
      }
  }

  void add(const std::string& name, const field& where) {
    const auto [found, fresh] = index_.emplace(name, names_.size());
    if (fresh) names_.push_back(name), sessions_.emplace_back();
    auto& of = sessions_[found->second];
    if (!of.empty() && of.back().end == forever)
      return problem(where, fmt::format("{} is added, but is there since {}", in_quotes(name),
                                        to_string(of.back().start)));
    of.push_back({now_, forever});
  }

  void remove(const std::string& name, const field& where) {
    const auto found = index_.find(name);
    if (found == index_.end() || sessions_[found->second].back().end != forever)
      return problem(where, fmt::format("{} is removed, but is not there", in_quotes(name)));
    auto& of = sessions_[found->second];
    of.back().end = now_;
    if (of.back().start == now_) of.pop_back();
    if (of.empty()) of.push_back({now_, now_}); // an empty session marks that the node is gone
  }

  void build() {
    bool any = false;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      out_.value.add(names_[i]);
      for (const session& s : sessions_[i])
        if (s.start < s.end) out_.value.add(names_[i], s), any = true;
    }
    out_.value.seen_until(latest_);
    if (!any) problem({}, "no sessions: no node is ever added");
  }

  std::vector<std::string> names_;
  std::vector<std::vector<session>> sessions_;
  std::map<std::string, std::size_t> index_;
  duration now_{}, latest_{};
};

} // namespace

trace_result read_events(std::istream& in, const std::string& unit) {
  return events_reader(in, unit).read();
}

} // namespace shoal::netem
