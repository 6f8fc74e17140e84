// Generates docs/scenario.md: one table for every part of a scenario, from the describe()
// functions.
#include "scenarios/schema/check_scenario.hpp"
#include "scenarios/schema/load.hpp"
#include "scenarios/schema/rule_text.hpp"
#include "scenarios/schema/values.hpp"

#include <deque>
#include <functional>

namespace shoal::scenarios {
namespace {

const char* type_word(const std::string&) {
  return "text";
}
const char* type_word(bool) {
  return "true or false";
}
const char* type_word(std::uint64_t) {
  return "count";
}
const char* type_word(double) {
  return "number";
}
const char* type_word(duration) {
  return "duration";
}
const char* type_word(time_offset) {
  return "duration with a sign";
}
const char* type_word(data_rate) {
  return "rate";
}
const char* type_word(data_size) {
  return "size";
}
const char* type_word(const kernels::grid&) {
  return "grid";
}
const char* type_word(const std::vector<std::string>&) {
  return "list of texts";
}
const char* type_word(const std::vector<double>&) {
  return "list of numbers";
}
std::string type_word(const word& value) {
  std::string out;
  for (const auto* name : value.names) out += (out.empty() ? "`" : ", `") + std::string(name) + "`";
  return out;
}
template <class E>
requires std::is_enum_v<E>
const char* type_word(E) {
  static const std::string words = [] {
    std::string out;
    for (const auto& [value, name] : names_of(E{}))
      out += (out.empty() ? "`" : ", `") + std::string(name) + "`";
    return out;
  }();
  return words.c_str();
}
template <class E>
requires std::is_enum_v<E>
const char* type_word(const std::vector<E>&) {
  static const std::string words = std::string("list of ") + type_word(E{});
  return words.c_str();
}

template <class T>
const char* unit_of(const T&) {
  if constexpr (std::is_same_v<T, duration>)
    return "s";
  else if constexpr (std::is_same_v<T, data_rate>)
    return "bit";
  else if constexpr (std::is_same_v<T, data_size>)
    return "B";
  else
    return "";
}

/// Breaks `text` into lines of at most 118 bytes, so that a full stop still fits into 120 columns.
std::string wrapped(std::string text) {
  std::size_t line = 0;
  for (std::size_t space = text.find(' '); space != std::string::npos;) {
    const std::size_t next = std::min(text.find(' ', space + 1), text.size());
    if (next - line > 118) {
      text[space] = '\n';
      line = space + 1;
    }
    space = next < text.size() ? next : std::string::npos;
  }
  return text;
}

class documenter {
public:
  template <class S>
  void section(const std::string& path, const char* meaning, S& value,
               const std::string& kind = {}) {
    out += fmt::format(
        "\n## {}\n\n{}.\n\n| key | type | default | range | meaning |\n|---|---|---|---|---|\n",
        (path.empty() ? "Top level" : "`" + path + "`") + kind, wrapped(capital(meaning)));
    path_ = path;
    describe(*this, value);
    // The sections of nested structs follow, depth first, in the file's order.
    std::deque<std::function<void()>> inner;
    inner.swap(later_);
    for (const auto& write : inner) write();
  }

  template <class T>
  void field(const char* key, T& value, const char* meaning, const rule& r = {}) {
    if constexpr (requires { written(value); }) {
      const bool list = std::is_same_v<T, std::vector<std::string>>;
      row(key,
          r.one_of ? (list ? "list of " : "") + words(r.one_of) : std::string(type_word(value)),
          default_text(value, r), range_text(r, unit_of(value)), meaning);
    } else if constexpr (requires { value.has_value(); }) {
      using inner = typename T::value_type;
      if constexpr (requires(inner known) { written(known); })
        row(key, type_word(inner{}), "", range_text(r, ""), meaning);
      else
        part<inner>(key, "", "mapping", meaning);
    } else if constexpr (std::is_same_v<T, options_list>) {
      part<options_box>(key, "[]", "list", meaning, value.fresh());
    } else if constexpr (requires { value.push_back({}); }) {
      part<typename T::value_type>(key, "[]", "list", meaning);
    } else if constexpr (requires { value.find(""); }) {
      part<typename T::mapped_type>(key, ".<name>", "mapping by name", meaning);
    } else if (std::is_same_v<T, lifetime_options> && !lifetimes_.empty()) {
      row(key, fmt::format("mapping, as `{}`", lifetimes_), "", "", meaning);
    } else {
      if (std::is_same_v<T, lifetime_options>) lifetimes_ = path_ + "." + key;
      part<T>(key, "", "mapping", meaning, fresh_of(value));
    }
  }

  void keyed(const char* key, std::vector<peer_group>&, const char* meaning) {
    part<peer_group>(key, ".<name>", "mapping by name", meaning);
  }

  void kind(const char* key, choice& standard, kind_list kinds, const char* meaning,
            const rule& = {}) {
    std::string names, meanings;
    for (const kind_definition* each : kinds) {
      names += (names.empty() ? "`" : ", `") + each->name + "`";
      meanings += fmt::format(". `{}`: {}", each->name, each->meaning);
      if (each->options == options_box{}) continue;
      later_.push_back([this, path = path_, key, options = each->options, of = each]() mutable {
        section(path, of->meaning.c_str(), options, fmt::format(" with `{}: {}`", key, of->name));
      });
    }
    row(key, names, "`" + standard.name() + "`", "", meaning + meanings);
  }

  void program(choice&, kind_list kinds) {
    for (const kind_definition* each : kinds)
      if (each->options != options_box{})
        part<options_box>(each->name.c_str(), "", "mapping", each->meaning.c_str(), each->options);
  }

  void action(fault&) {
    row("kill", values<fault_scope>(), "", "",
        "a process: others see the connection reset; a machine: silence. "
        "A fault has one of the keys `kill` to `clock`");
    row("restart", values<fault_scope>(), "", "", "killed, and back after `downtime`");
    row("join", values<whole_host>(), "", "", "a host that is not there starts");
    row("pause", values<whole_host>(), "", "",
        "the host stops running, as after SIGSTOP; arriving messages wait");
    row("throttle", values<line_part>(), "", "", "the line gets slower: to `rate`, or by `factor`");
    row("netem", values<netem::traffic_direction>(), "", "",
        "the line gets worse for what the hosts send (`from`), are sent (`to`) or both: `delay` to "
        "`flow_rate`, and `rate`");
    row("partition", values<partition_shape>(), "", "",
        "cuts the network. `selected`: between the selected hosts and all others. `minority-third` "
        "and `halves`: between a random minority (below a third) or half of the selected hosts and "
        "all others. `majorities-ring`: each selected host reaches a majority of them, no two the "
        "same. `regions`: between regions");
    row("blackhole", values<netem::traffic_direction>(), "", "",
        "messages from each host (`from`), to the host (`to`), or both vanish");
    row("swizzle-clog", values<netem::traffic_direction>(), "", "",
        "hosts are cut off one after the other, and come back in another order, within `duration`");
    row("clock", values<clock_fault>(), "", "",
        "the hosts' UTC jumps by `ahead` or `behind`, or runs at another speed");
  }

  std::string out;

private:
  template <class E>
  static std::string values() {
    std::string listed;
    for (const auto& [value, name] : names_of(E{}))
      listed += std::string(listed.empty() ? "" : ", ") + name;
    return words(listed);
  }

  /// Returns '`a`, `b`' for 'a, b'.
  static std::string words(const std::string& listed) {
    std::string made = "`";
    for (char c : listed)
      made += c == ',' ? std::string("`,") : c == ' ' ? std::string(" `") : std::string(1, c);
    return made + "`";
  }

  static std::string capital(std::string text) {
    if (!text.empty() && text[0] >= 'a' && text[0] <= 'z')
      text[0] = static_cast<char>(text[0] - 'a' + 'A');
    return text;
  }

  template <class T>
  static std::string default_text(const T& value, const rule& r) {
    if (r.required) return "**required**";
    if (r.otherwise) return r.otherwise;
    const std::string text = written(value);
    return text == "\"\"" ? "" : "`" + text + "`";
  }

  void row(const std::string& key, const std::string& type, const std::string& value,
           const std::string& range, const std::string& meaning) {
    out += fmt::format("| `{}` | {} | {} | {} | {} |\n", key, type, value, range, meaning);
  }

  template <class S>
  void part(const char* key, const char* suffix, const char* type, const char* meaning,
            S fresh = {}) {
    const std::string path = (path_.empty() ? "" : path_ + ".") + key + suffix;
    row(key, fmt::format("{}, see `{}`", type, path), "", "", meaning);
    later_.push_back([this, path, meaning, fresh]() mutable { section(path, meaning, fresh); });
  }

  std::string path_,
      lifetimes_; // lifetimes_: path of the first lifetime; the others refer to its table
  std::deque<std::function<void()>> later_;
};

std::string list_of(std::span<const std::string> names) {
  std::string out;
  for (const std::string& name : names) out += fmt::format("- `{}`\n", name);
  return out;
}

} // namespace

std::string reference_markdown() {
  documenter page;
  page.out = "# Scenario reference\n\n"
             "Generated from `scenarios/schema/describe.hpp`; a test compares the two.\n\n"
             "Every quantity has a unit: durations `80ms`, `2h`; rates `100Mbit`; sizes `512KiB`. "
             "Any option can be\n"
             "changed from the command line by its path: `--set peers.home.count=8`, `--set "
             "data.files=[a.txt,b.txt]`,\n"
             "`--set faults.0.at=3s`. YAML anchors, aliases and merge keys (`<<`) work; top-level "
             "keys that begin with\n"
             "`x-` are ignored, so that anchors have a place. `shoal check --show FILE` prints a "
             "scenario with every\n"
             "default filled in.\n";
  scenario fresh;
  page.section("", "one file, one run", fresh);
  page.out += "\n## Probes\n\nFor `faults[].on`:\n\n" + list_of(known_probes());
  page.out += "\n## Metrics\n\nFor `expect`:\n\n" + list_of(known_metrics());
  return page.out;
}

} // namespace shoal::scenarios
