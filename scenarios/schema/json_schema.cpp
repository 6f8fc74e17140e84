#include "scenarios/schema/json_schema.hpp"

#include "kernels/base/json_text.hpp"
#include "kernels/base/units_pattern.hpp"
#include "scenarios/schema/rule_text.hpp"
#include "scenarios/schema/values.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shoal::scenarios {
namespace {

using json = nlohmann::ordered_json;

template <class T>
constexpr bool is_described_list = false;
template <class T>
constexpr bool is_described_list<std::vector<T>> = true;

json number(double value) {
  if (value == std::floor(value) && std::abs(value) < 9e15) return static_cast<std::int64_t>(value);
  return value;
}

void add_bounds(json& to, const rule& r) {
  if (r.above) to["exclusiveMinimum"] = number(*r.above);
  if (r.at_least) to["minimum"] = number(*r.at_least);
  if (r.below) to["exclusiveMaximum"] = number(*r.below);
  if (r.at_most) to["maximum"] = number(*r.at_most);
}

bool above_zero(const rule& r) {
  return (r.above && *r.above >= 0) || (r.at_least && *r.at_least > 0);
}
bool not_negative(const rule& r) {
  return above_zero(r) || (r.at_least && *r.at_least >= 0);
}

/// A quantity in text, or 0 without a unit.
json quantity(const std::string& pattern, const rule& r, const char* unit) {
  json text{{"type", "string"}, {"pattern", pattern}};
  if (const auto range = range_text(r, unit); !range.empty()) text["$comment"] = range;
  if (above_zero(r)) return text;
  return {{"anyOf", {text, {{"const", 0}}}}};
}

// schema_of() gives the schema of one value.

json schema_of(const std::string&, const rule& r) {
  if (r.one_of) return {{"enum", listed_names(r.one_of)}};
  return {{"type", {"string", "number", "boolean"}}};
}
json schema_of(bool, const rule&) {
  return {{"type", "boolean"}};
}
json schema_of(std::uint64_t, const rule& r) {
  json out{{"type", "integer"}};
  add_bounds(out, r);
  if (!not_negative(r)) out["minimum"] = 0;
  if (!r.at_most && !r.below) out["maximum"] = std::numeric_limits<std::uint64_t>::max();
  return out;
}
json schema_of(double, const rule& r) {
  json plain{{"type", "number"}};
  add_bounds(plain, r);
  if (!r.fraction) return plain;
  const std::string pattern = std::string(above_zero(r) ? "^(?=[0.]*[1-9])" : "^") +
                              (not_negative(r) ? "" : "-?") +
                              "([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([eE][+-]?[0-9]+)?%$";
  return {{"anyOf", {plain, {{"type", "string"}, {"pattern", pattern}}}}};
}
json schema_of(duration, const rule& r) {
  return quantity(duration_pattern(above_zero(r)), r, "s");
}
json schema_of(time_offset, const rule& r) {
  return quantity("^[+-]?" + duration_pattern(false).substr(1), r, "s");
}
json schema_of(data_rate, const rule& r) {
  return quantity(rate_pattern(above_zero(r)), r, "bit");
}
json schema_of(data_size, const rule& r) {
  return quantity(size_pattern(above_zero(r)), r, "B");
}
json schema_of(const kernels::grid&, const rule&) {
  constexpr auto most_side = std::numeric_limits<decltype(kernels::grid::side)>::max();
  return {{"anyOf",
           {{{"type", "string"}, {"pattern", "^(?!0*[01]?([xX]|$))([0-9]+)([xX]\\2)*$"}},
            {{"type", "integer"}, {"minimum", 2}, {"maximum", most_side}}}}};
}
json schema_of(const word& value, const rule& r) {
  if (r.one_of) return {{"enum", listed_names(r.one_of)}};
  return {{"enum", value.names}};
}
template <class E>
requires std::is_enum_v<E> json schema_of(E, const rule& r) {
  json names = json::array();
  for (const auto& [value, name] : names_of(E{})) names.push_back(name);
  if (r.one_of) names = listed_names(r.one_of);
  if constexpr (requires { former_names_of(E{}); }) {
    json former = json::array();
    for (const auto& [value, name] : former_names_of(E{})) former.push_back(name);
    return {{"anyOf", {{{"enum", names}}, {{"enum", former}, {"deprecated", true}}}}};
  }
  return {{"enum", names}};
}

// default_of() gives a default as JSON; null: the schema names none.

json default_of(const std::string& value) {
  return value.empty() ? json() : json(value);
}
json default_of(bool value) {
  return value;
}
json default_of(std::uint64_t value) {
  return value;
}
json default_of(double value) {
  return number(value);
}
json default_of(const kernels::grid&) {
  return {};
}
template <class T>
requires(requires(const T& value) { written(value); } && !is_described_list<T>) json
    default_of(const T& value) {
  const std::string text = written(value);
  return text == "0" || text == "0s" || text == "0bit" || text == "0B" ? json(0) : json(text);
}

/// Describes the mappings of a scenario. One writer is one mapping.
class schema_writer {
public:
  /// Takes `program` for the chosen program of the file, where the mapping has programs; null: the
  /// program without a section.
  explicit schema_writer(const kind_definition* program = nullptr) : program_(program) {}

  template <class T>
  void field(const char* key, T& value, const char* meaning, const rule& r = {}) {
    json made = value_schema(value, r);
    std::string text = meaning;
    if (r.otherwise && *r.otherwise) text += std::string(". Default: ") + r.otherwise;
    json described{{"description", text}};
    if constexpr (requires { default_of(value); })
      if (!r.required && !r.otherwise)
        if (json standard = default_of(value); !standard.is_null()) described["default"] = standard;
    described.update(made);
    if (r.required) required_.emplace_back(key);
    if (r.formerly) {
      json old = described;
      old["deprecated"] = true;
      properties_[r.formerly] = old;
      all_of_.push_back({{"not", {{"required", {key, r.formerly}}}}});
    }
    properties_[key] = std::move(described);
  }

  void keyed(const char* key, std::vector<peer_group>&, const char* meaning) {
    peer_group fresh;
    properties_[key] = {{"description", meaning},
                        {"type", {"object", "null"}},
                        {"additionalProperties", mapping(fresh)}};
  }

  void kind(const char* key, choice& standard, kind_list kinds, const char* meaning,
            const rule& = {}) {
    json names = json::array(), meanings = json::array();
    std::map<std::string, json> options; // by kind
    std::vector<std::string> all;        // names of options, in their order
    for (const kind_definition* each : kinds) {
      names.push_back(each->name);
      meanings.push_back(each->meaning);
      schema_writer of_kind;
      options_box box = each->options;
      describe(of_kind, box);
      json& made = options[each->name] = of_kind.finish();
      for (const auto& [option, schema] : made["properties"].items())
        if (std::find(all.begin(), all.end(), option) == all.end()) all.push_back(option);
    }
    properties_[key] = {{"description", meaning},
                        {"default", standard.name()},
                        {"enum", names},
                        {"enumDescriptions", meanings}};
    for (const auto& option : all) properties_[option] = json::object();
    for (const kind_definition* each : kinds) {
      const json& made = options[each->name];
      json then{{"properties", made["properties"]}};
      for (const auto& option : all)
        if (!made["properties"].contains(option)) then["properties"][option] = false;
      if (made.contains("required")) then["required"] = made["required"];
      if (then["properties"].empty()) continue;
      json chosen{{"properties", {{key, {{"const", each->name}}}}}};
      // A file that leaves the key out has the standard kind, so the key is not required there.
      if (each->name != standard.name()) chosen["required"] = {key};
      all_of_.push_back({{"if", std::move(chosen)}, {"then", std::move(then)}});
      if (made.contains("allOf"))
        for (const auto& more : made["allOf"]) all_of_.push_back(more);
    }
  }

  void program(choice& what, kind_list kinds) {
    for (const kind_definition* each : kinds) {
      if (each->options == options_box{}) continue;
      options_box fresh = each->options.fresh();
      json made = mapping(fresh);
      made["description"] = each->meaning;
      for (const auto& other : sections_)
        all_of_.push_back({{"not", {{"required", {other, each->name}}}}});
      sections_.push_back(each->name);
      properties_[each->name] = std::move(made);
    }
    if (program_) what = choice(*program_);
    kinds_ = kinds;
  }

  void action(fault& what) {
    json one = json::array();
    for (const auto& [kind, key] : names_of(fault_kind{})) {
      what.kind = kind;
      with_action_value(
          what, [&, name = key](auto& value) { properties_[name] = schema_of(value, rule{}); });
      one.push_back({{"required", {key}}});
    }
    one_of_ = std::move(one);
  }

  json finish() const {
    json out;
    const bool empty_is_fine = required_.empty() && one_of_.empty();
    if (empty_is_fine)
      out["type"] = {"object", "null"};
    else
      out["type"] = "object";
    out["properties"] = properties_;
    out["additionalProperties"] = false;
    if (!required_.empty()) out["required"] = required_;
    if (!one_of_.empty()) out["oneOf"] = one_of_;
    if (!all_of_.empty()) out["allOf"] = all_of_;
    return out;
  }

  const std::vector<std::string>& required() const { return required_; }
  const std::vector<std::string>& sections() const { return sections_; }
  kind_list programs() const { return kinds_; }

private:
  template <class S>
  static json mapping(S& fresh) {
    schema_writer inner;
    describe(inner, fresh);
    return inner.finish();
  }

  template <class T>
  static json list(T items) {
    return {{"type", {"array", "null"}}, {"items", std::move(items)}};
  }

  /// A mapping, or the text that is short for one.
  static json or_short(json whole, json text) { return {{"anyOf", {std::move(text), whole}}}; }

  template <class T>
  static json value_schema(T& value, const rule& r) {
    if constexpr (requires { value.has_value(); }) {
      typename T::value_type inner{};
      return value_schema(inner, r);
    } else if constexpr (std::is_same_v<T, options_list>) {
      options_box fresh = value.fresh();
      return list(mapping(fresh));
    } else if constexpr (is_described_list<T>) {
      typename T::value_type item{};
      return list(value_schema(item, is_value<typename T::value_type> ? r : rule{}));
    } else if constexpr (requires {
                           value.find("");
                           typename T::mapped_type;
                         }) {
      typename T::mapped_type item{};
      return {{"type", {"object", "null"}}, {"additionalProperties", mapping(item)}};
    } else if constexpr (requires { schema_of(value, r); }) {
      return schema_of(value, r);
    } else {
      T fresh = fresh_of(value);
      json whole = mapping(fresh);
      if constexpr (requires { short_kinds(fresh); }) {
        json names = json::array();
        for (const auto* each : short_kinds(fresh)) names.push_back(each->name);
        return or_short(std::move(whole), {{"enum", names}});
      } else if constexpr (requires { short_form(fresh); }) {
        const auto [field, how] = short_form(fresh);
        return or_short(std::move(whole), value_schema(*field, how));
      } else {
        return whole;
      }
    }
  }

  json properties_ = json::object(), all_of_ = json::array(), one_of_ = json::array();
  std::vector<std::string> required_, sections_;
  const kind_definition* program_;
  kind_list kinds_;
};

} // namespace

std::string json_schema() {
  scenario fresh;
  schema_writer top;
  describe(top, fresh);
  json body = top.finish();
  // The keys that a file has to have depend on its program.
  body.erase("required");
  json sections = json::array();
  for (const auto& name : top.sections()) sections.push_back({{"required", {name}}});
  for (const kind_definition* each : top.programs()) {
    const bool has_section = each->options != options_box{};
    scenario other;
    schema_writer with(each);
    describe(with, other);
    if (with.required().empty()) continue;
    json chosen;
    if (has_section)
      chosen = {{"required", {each->name}}};
    else if (!sections.empty())
      chosen = {{"not", {{"anyOf", sections}}}};
    else
      chosen = true;
    body["allOf"].push_back({{"if", chosen}, {"then", {{"required", with.required()}}}});
  }
  json out{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
           {"title", "Shoal scenario"},
           {"description", "One file, one run. Every quantity has a unit: durations `80ms`, rates "
                           "`100Mbit`, sizes `512KiB`."}};
  body["type"] = "object";
  // Keys that begin with x- are free: anchors have a place there.
  body["patternProperties"] = {{"^x-", true}};
  out.update(body);
  return json_text(out, 2) + "\n";
}

} // namespace shoal::scenarios
