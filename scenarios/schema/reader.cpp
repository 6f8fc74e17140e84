#include "scenarios/schema/reader.hpp"

#include "scenarios/schema/diagnostic.hpp"
#include "scenarios/schema/rule_text.hpp"
#include "scenarios/schema/values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

namespace shoal::scenarios {
namespace {

constexpr std::size_t most_problems = 100;

struct reading {
  source_map& sources;
  std::vector<problem>& problems;

  std::set<std::tuple<int, int, int, std::string>> said{};
  /// Notes by path, for entries that a --set created. The reader adds the note if such an entry
  /// lacks a key.
  std::map<std::string, std::string> created{};

  /// Reports an error. `reason` is the message without the path. A mistake in a value that several
  /// aliases share is reported once.
  void fail(const std::string& path, const position& where, const std::string& reason,
            std::string message, std::vector<std::string> notes = {}) {
    sources.failed.insert(path);
    if (!said.emplace(where.set, where.line, where.column, reason).second) return;
    if (problems.size() < most_problems)
      problems.push_back({where, std::move(message), std::move(notes)});
  }

  void warn(const position& where, std::string message) {
    if (!said.emplace(where.set, where.line, where.column, message).second) return;
    if (problems.size() < most_problems)
      problems.push_back({where, std::move(message), {}, /*warning=*/true});
  }
};

std::string join(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

const char* kind_name(const node& value) {
  switch (value.kind) {
  case node_kind::null:
    return "nothing";
  case node_kind::scalar:
    return "a single value";
  case node_kind::sequence:
    return "a list";
  case node_kind::mapping:
    return "a mapping";
  }
  return "";
}

template <class T>
constexpr bool is_vector = false;
template <class T>
constexpr bool is_vector<std::vector<T>> = true;
template <class T>
constexpr bool is_map = false;
template <class T>
constexpr bool is_map<std::map<std::string, T>> = true;
template <class T>
constexpr bool is_optional = false;
template <class T>
constexpr bool is_optional<std::optional<T>> = true;

/// Reads one mapping.
class reader {
public:
  reader(reading& shared, const node& mapping, std::string path, position key)
      : shared_(shared), mapping_(mapping), path_(std::move(path)), key_(key) {}

  template <class T>
  void field(const char* key, T& value, const char*, const rule& r = {}) {
    const entry* found = find(key, r);
    if (!found) {
      if (r.required) missing_.emplace_back(key);
      return;
    }
    const std::string path = join(path_, key);
    note(path, *found);
    read(value, *found->value, path, found->where, r);
  }

  void keyed(const char* key, std::vector<peer_group>& groups, const char*) {
    known_.emplace_back(key);
    const entry* found = mapping_.find(key);
    if (!found) return;
    const std::string path = join(path_, key);
    note(path, *found);
    if (!expect(node_kind::mapping, *found->value, path, found->where)) return;
    for (const entry& item : found->value->entries) {
      const std::string item_path = join(path, item.key);
      note(item_path, item);
      created(*found->value, item, item_path, "group");
      peer_group group;
      group.name = item.key;
      read(group, *item.value, item_path, item.where, {});
      groups.push_back(std::move(group));
    }
  }

  void kind(const char* key, choice& what, kind_list kinds, const char*, const rule& = {}) {
    known_.emplace_back(key);
    auto& foreign = foreign_.emplace_back();
    foreign.path = join(path_, key);
    if (const entry* found = mapping_.find(key)) {
      note(foreign.path, *found);
      choose_kind(what, kinds, foreign.path, *found->value, found->where);
      foreign.by_set = found->where.set >= 0 || found->value->where.set >= 0;
    }
    foreign.unknown = shared_.sources.failed.contains(foreign.path);
    foreign.chosen = what.name();
    foreign.key = key;
    describe(*this, what.options);
    for (const kind_definition* other : kinds) {
      if (other == what.kind) continue;
      key_lister keys;
      options_box options = other->options;
      describe(keys, options);
      for (const auto& each : keys.found) foreign.options[each].push_back(other->name);
    }
  }

  /// Selects the program whose section the file has, or else the first program, which has no
  /// section.
  void program(choice& what, kind_list kinds) {
    const entry* chosen = nullptr;
    for (const kind_definition* each : kinds) {
      if (each->options == options_box{}) continue;
      known_.push_back(each->name);
      const entry* found = mapping_.find(each->name);
      if (!found) continue;
      const std::string path = join(path_, each->name);
      note(path, *found);
      if (chosen) {
        shared_.fail(
            path, found->where, "both",
            fmt::format("both '{}' and '{}': a file is one of them", chosen->key, each->name));
        continue;
      }
      chosen = found;
      what = choice(*each);
      read(what.options, *found->value, path, found->where, {});
    }
  }

  void action(fault& what) {
    const entry* chosen = nullptr;
    for (const auto& [candidate, key] : names_of(fault_kind{})) {
      known_.emplace_back(key);
      const entry* found = mapping_.find(key);
      if (!found) continue;
      note(join(path_, key), *found);
      if (chosen) {
        shared_.fail(path_, found->where, "both",
                     fmt::format("both '{}' and '{}' in {}: a fault is one of them", chosen->key,
                                 key, path_));
        continue;
      }
      chosen = found;
      what.kind = candidate;
    }
    if (!chosen) {
      shared_.sources.failed.insert(join(path_, action_path));
      no_action_ = true;
      return;
    }
    const std::string path = join(path_, chosen->key);
    with_action_value(what,
                      [&](auto& value) { read(value, *chosen->value, path, chosen->where, {}); });
    if (shared_.sources.failed.contains(path))
      shared_.sources.failed.insert(join(path_, action_path));
  }

  /// Reports unknown and missing keys. Requires: describe() has visited all fields.
  void finish() {
    std::set<std::string> meant;
    for (const entry& item : mapping_.entries) {
      if (std::find(known_.begin(), known_.end(), item.key) != known_.end() ||
          former_.contains(item.key) || of_another_kind(item))
        continue;
      if (path_.empty() && item.key.starts_with("x-")) continue;
      if (shared_.problems.size() >= most_problems) break;
      if (path_.empty() && item.key == "directory") {
        shared_.fail(item.key, item.where, "removed",
                     "directory: was removed: peers find each other through the DHT");
        continue;
      }
      auto notes = meant_notes(item.key, known_);
      if (const auto guess = closest(item.key, known_)) {
        meant.insert(*guess);
        shared_.sources.failed.insert(join(path_, *guess));
      } else if (path_.empty()) {
        notes.emplace_back("only keys that begin with 'x-' are free");
      }
      shared_.fail(join(path_, item.key), item.where, "unknown",
                   fmt::format("unknown key '{}'{}", item.key, path_.empty() ? "" : " in " + path_),
                   std::move(notes));
    }
    std::vector<std::string> created; // note on the first missing key
    if (const auto found = shared_.created.find(path_); found != shared_.created.end())
      created.push_back(found->second);
    for (const std::string& key : missing_) {
      if (meant.contains(key)) continue;
      shared_.fail(join(path_, key), key_, key,
                   fmt::format("missing key '{}'{}", key, path_.empty() ? "" : " in " + path_),
                   std::exchange(created, {}));
    }
    if (!no_action_) return;
    std::vector<std::string> actions;
    for (const auto& [kind, key] : names_of(fault_kind{})) actions.emplace_back(key);
    if (std::any_of(actions.begin(), actions.end(),
                    [&](const std::string& key) { return meant.contains(key); }))
      return;
    shared_.fail(join(path_, action_path), key_, "action",
                 fmt::format("{} says nothing of what happens: one of {} is needed", path_,
                             fmt::join(actions, ", ")));
  }

private:
  /// Options of the kinds that one key did not choose.
  struct foreign_options {
    std::string path, key, chosen;
    bool unknown = false;                                    // the chosen kind is not known
    bool by_set = false;                                     // a --set argument chose the kind
    std::map<std::string, std::vector<std::string>> options; // names of kinds, by option
  };

  struct key_lister {
    std::vector<std::string> found;
    template <class T>
    void field(const char* key, T&, const char*, const rule& = {}) {
      found.emplace_back(key);
    }
  };

  /// Returns the entry of `key`, or of the key's former name. A --set argument overrides the file
  /// even if the two use different names.
  const entry* find(const char* key, const rule& r) {
    known_.emplace_back(key);
    const entry* found = mapping_.find(key);
    if (!r.formerly) return found;
    former_.emplace(r.formerly);
    const entry* old = mapping_.find(r.formerly);
    if (!old) return found;
    const std::string path = join(path_, r.formerly);
    shared_.warn(old->where, fmt::format("{}: the key is called '{}' now", path, key));
    if (!found) return old;
    const bool found_set = found->where.set >= 0 || found->value->where.set >= 0;
    const bool old_set = old->where.set >= 0 || old->value->where.set >= 0;
    if (found_set != old_set) return found_set ? found : old;
    shared_.fail(path, old->where, "both",
                 fmt::format("both '{}' and its former name '{}'{}: keep '{}'", key, r.formerly,
                             path_.empty() ? "" : " in " + path_, key));
    return found;
  }

  void choose_kind(choice& what, kind_list kinds, const std::string& path, const node& found,
                   const position& key) {
    if (!expect(node_kind::scalar, found, path, key)) return;
    std::vector<std::string> names;
    for (const kind_definition* each : kinds) names.push_back(each->name);
    const std::size_t chosen = choose(found.text, names);
    if (chosen < names.size()) {
      static_cast<choice&>(what) = choice(*kinds[chosen]);
      return;
    }
    const auto why = not_one_of(found.text, names);
    shared_.fail(path, found.where, why, fmt::format("{}: {}", path, why),
                 meant_notes(found.text, names));
  }

  /// Handles an entry that is an option of another kind than the chosen one. If a --set argument
  /// chose the kind, the reader ignores the file's options of other kinds.
  bool of_another_kind(const entry& item) {
    for (const auto& foreign : foreign_) {
      const auto found = foreign.options.find(item.key);
      if (found == foreign.options.end()) continue;
      if (foreign.unknown || (foreign.by_set && item.where.set < 0)) return true;
      const auto& kinds = found->second;
      shared_.fail(join(path_, item.key), item.where, "kind",
                   fmt::format("{} is an option of the {}{} '{}', and {} is '{}'",
                               join(path_, item.key), foreign.key, kinds.size() > 1 ? "s" : "",
                               fmt::join(kinds, "' and '"), foreign.path, foreign.chosen),
                   {fmt::format("did you mean '{0}: {1}'?", foreign.key,
                                fmt::join(kinds, fmt::format("' or '{}: ", foreign.key)))});
      return true;
    }
    return false;
  }

  /// Records that a --set argument created this entry, because its name may be misspelt.
  void created(const node& siblings, const entry& item, const std::string& path, const char* what) {
    if (item.where.set < 0) return;
    std::vector<std::string> names;
    for (const entry& other : siblings.entries)
      if (other.key != item.key) names.push_back(other.key);
    std::string text = fmt::format("a new {} '{}'", what, item.key);
    if (const auto question = did_you_mean(item.key, names); !question.empty())
      text += "; " + question;
    shared_.created.emplace(path, std::move(text));
  }

  void note(const std::string& path, const entry& found) {
    shared_.sources.values.emplace(path, found.value->kind == node_kind::null ? found.where
                                                                              : found.value->where);
    shared_.sources.keys.emplace(path, found.where);
  }

  bool expect(node_kind kind, const node& value, const std::string& path, const position& key) {
    if (value.kind == kind) return true;
    // A key without a value is an empty mapping or list.
    if (value.kind == node_kind::null && kind != node_kind::scalar) return true;
    const char* wanted = kind == node_kind::scalar     ? "a single value"
                         : kind == node_kind::sequence ? "a list"
                                                       : "a mapping";
    const bool nothing = value.kind == node_kind::null;
    const std::string reason =
        nothing ? "has no value" : fmt::format("is {}, expected {}", kind_name(value), wanted);
    shared_.fail(path, nothing ? key : value.where, reason, path + " " + reason);
    return false;
  }

  template <class T>
  void read(T& out, const node& value, const std::string& path, const position& key,
            const rule& r) {
    if constexpr (is_optional<T>) {
      out.emplace();
      read(*out, value, path, key, r);
    } else if constexpr (is_vector<T> || std::is_same_v<T, options_list>) {
      using item_type = typename T::value_type;
      if constexpr (is_value<item_type>)
        if (value.kind == node_kind::scalar) {
          // In a --set argument, a single value stands for a list of one item.
          if (value.where.set >= 0) {
            out.assign(1, item_type{});
            const std::string item_path = join(path, "0");
            shared_.sources.values.emplace(item_path, value.where);
            return read(out.back(), value, item_path, key, r);
          }
          shared_.fail(path, value.where, "list", path + " is a single value, expected a list",
                       {fmt::format("write [{}]", value.text)});
          return;
        }
      if (!expect(node_kind::sequence, value, path, key)) return;
      out.clear();
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        const node& item = *value.items[i];
        const std::string item_path = join(path, std::to_string(i));
        shared_.sources.values.emplace(item_path, item.where);
        shared_.sources.keys.emplace(item_path, item.where);
        out.emplace_back();
        read(out.back(), item, item_path, item.where, is_value<item_type> ? r : rule{});
      }
    } else if constexpr (is_map<T>) {
      if (!expect(node_kind::mapping, value, path, key)) return;
      for (const entry& item : value.entries) {
        const std::string item_path = join(path, item.key);
        note(item_path, item);
        created(value, item, item_path, "entry");
        read(out[item.key], *item.value, item_path, item.where, {});
      }
    } else if constexpr (requires { describe(*this, out); }) {
      if constexpr (requires { short_form(out); })
        if (value.kind == node_kind::scalar) {
          const auto [field, how] = short_form(out);
          return read(*field, value, path, key, how);
        }
      if constexpr (requires { short_kinds(out); })
        if (value.kind == node_kind::scalar)
          return choose_kind(out, short_kinds(out), path, value, key);
      if (!expect(node_kind::mapping, value, path, key)) return;
      reader inner(shared_, value, path, key);
      describe(inner, out);
      inner.finish();
    } else {
      if (!expect(node_kind::scalar, value, path, key)) return;
      if constexpr (requires { former_names_of(T{}); })
        for (const auto& [meaning, name] : former_names_of(T{}))
          if (value.text == name) {
            shared_.warn(value.where,
                         fmt::format("{}: '{}' is called '{}' now", path, name, name_of(meaning)));
            out = meaning;
            return;
          }
      if (const auto why = parse(value.text, out, r); !why.empty())
        shared_.fail(path, value.where, why, fmt::format("{}: {}", path, why),
                     meant(value.text, out, r));
    }
  }

  /// The valid words of a value, if it has a closed list of them.
  template <class T>
  static std::vector<std::string> choices_of(const T& value, const rule& r) {
    std::vector<std::string> choices;
    if constexpr (std::is_enum_v<T>)
      for (const auto& [each, name] : names_of(T{})) choices.emplace_back(name);
    if constexpr (std::is_same_v<T, word>) choices.assign(value.names.begin(), value.names.end());
    if (r.one_of)
      for (auto& each : listed_names(r.one_of)) choices.push_back(std::move(each));
    return choices;
  }

  template <class T>
  static std::vector<std::string> meant(const std::string& text, const T& out, const rule& r) {
    return meant_notes(text, choices_of(out, r));
  }

  /// Each parse() returns an error message, or an empty text on success.
  static std::string parse(const std::string& text, std::string& out, const rule& r) {
    out = text;
    if (!r.one_of) return {};
    const auto choices = choices_of(out, r);
    return choose(text, choices) < choices.size() ? "" : not_one_of(text, choices);
  }

  static std::string parse(const std::string& text, bool& out, const rule&) {
    if (text != "true" && text != "false")
      return fmt::format("expected true or false, not '{}'", text);
    out = text == "true";
    return {};
  }

  static std::string parse(const std::string& text, std::uint64_t& out, const rule& r) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (text.starts_with('-')) return fmt::format("'{}' is negative, expected a count", text);
    if (error == std::errc::result_out_of_range) return fmt::format("'{}' is too large", text);
    if (error != std::errc{} || end != text.data() + text.size())
      return fmt::format("expected a whole number, not '{}'", text);
    return check_range(r, static_cast<double>(out), "");
  }

  static std::string parse(const std::string& text, double& out, const rule& r) {
    const bool percent = text.ends_with('%');
    const std::size_t size = text.size() - (percent && r.fraction ? 1 : 0);
    const auto [end, error] = std::from_chars(text.data(), text.data() + size, out);
    if (error != std::errc{} || end != text.data() + size || !std::isfinite(out))
      return fmt::format("expected a number{}, not '{}'", r.fraction ? " or a percentage" : "",
                         text);
    if (size != text.size()) out /= 100;
    return check_range(r, out, "");
  }

  static std::string parse(const std::string& text, kernels::grid& out, const rule&) {
    auto parsed = kernels::parse_grid(text);
    if (!parsed) return parsed.error();
    out = *parsed;
    return {};
  }

  static std::string parse(const std::string& text, duration& out, const rule& r) {
    auto parsed = parse_duration(text);
    if (!parsed) return parsed.error();
    out = *parsed;
    return check_range(r, to_seconds(out), "s");
  }

  static std::string parse(const std::string& text, time_offset& out, const rule&) {
    const bool behind = text.starts_with('-');
    auto parsed = parse_duration(text.substr(behind || text.starts_with('+') ? 1 : 0));
    if (!parsed) return parsed.error();
    if (*parsed > 14h) return "has to be between -14h and +14h";
    out.ahead = behind ? -*parsed : *parsed;
    return {};
  }

  static std::string parse(const std::string& text, data_rate& out, const rule& r) {
    auto parsed = parse_rate(text);
    if (!parsed) return parsed.error();
    out = *parsed;
    return check_range(r, out.bits_per_second, "bit");
  }

  static std::string parse(const std::string& text, data_size& out, const rule& r) {
    auto parsed = parse_size(text);
    if (!parsed) return parsed.error();
    out = *parsed;
    return check_range(r, static_cast<double>(out.bytes), "B");
  }

  template <class E>
  requires std::is_enum_v<E>
  static std::string parse(const std::string& text, E& out, const rule& r) {
    constexpr auto names = names_of(E{});
    const auto choices = choices_of(out, r);
    const std::size_t chosen = choose(text, choices);
    if (chosen == choices.size()) return not_one_of(text, choices);
    out = names[chosen].first;
    return {};
  }

  static std::string parse(const std::string& text, word& out, const rule& r) {
    const auto choices = choices_of(out, r);
    const std::size_t chosen = choose(text, choices);
    if (chosen == choices.size()) return not_one_of(text, choices);
    out.chosen = chosen;
    return {};
  }

  static std::size_t choose(const std::string& text, const std::vector<std::string>& choices) {
    return static_cast<std::size_t>(std::find(choices.begin(), choices.end(), text) -
                                    choices.begin());
  }

  static std::string not_one_of(const std::string& text, const std::vector<std::string>& choices) {
    if (choices.size() == 1) return fmt::format("expected {}, not '{}'", choices.front(), text);
    return fmt::format("'{}' is not one of {}", text, fmt::join(choices, ", "));
  }

  static std::string check_range(const rule& r, double value, const char* unit) {
    const bool fits = (!r.above || value > *r.above) && (!r.at_least || value >= *r.at_least) &&
                      (!r.below || value < *r.below) && (!r.at_most || value <= *r.at_most);
    return fits ? "" : "has to be " + range_text(r, unit);
  }

  reading& shared_;
  const node& mapping_;
  std::string path_;
  position key_;
  std::vector<std::string> known_, missing_;
  std::set<std::string> former_; // former names of keys
  std::vector<foreign_options> foreign_;
  bool no_action_ = false; // the mapping is a fault without an action
};

position nearest(const std::map<std::string, position>& first,
                 const std::map<std::string, position>& around, std::string path) {
  if (const auto found = first.find(path); found != first.end()) return found->second;
  while (true) {
    if (const auto found = around.find(path); found != around.end()) return found->second;
    const std::size_t dot = path.rfind('.');
    if (dot == std::string::npos) return {};
    path.resize(dot);
  }
}

} // namespace

position source_map::value_at(const std::string& path) const {
  return nearest(values, keys, path);
}
position source_map::key_at(const std::string& path) const {
  return nearest(keys, keys, path);
}

bool source_map::sound(const std::string& path) const {
  for (std::size_t end = path.size(); end != std::string::npos; end = path.rfind('.', end - 1)) {
    if (failed.contains(path.substr(0, end))) return false;
    if (end == 0) break;
  }
  return !failed.contains("");
}

namespace {

template <class T>
void read_document(const node& root, const char* what, T& out, source_map& sources,
                   std::vector<problem>& problems) {
  reading shared{sources, problems};
  if (root.kind != node_kind::mapping) {
    shared.fail("", root.where, "root",
                fmt::format("{} is a mapping of keys to values, not {}", what, kind_name(root)));
    return;
  }
  reader top(shared, root, "", {});
  describe(top, out);
  top.finish();
}

} // namespace

void read_scenario(const node& root, scenario& out, source_map& sources,
                   std::vector<problem>& problems) {
  read_document(root, "a scenario", out, sources, problems);
}

void read_inventory(const node& root, inventory& out, source_map& sources,
                    std::vector<problem>& problems) {
  read_document(root, "an inventory", out, sources, problems);
}

} // namespace shoal::scenarios
