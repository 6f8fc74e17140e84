#include "scenarios/compare/value_diff.hpp"

#include "kernels/base/json_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>

namespace shoal::scenarios {

namespace {

constexpr std::array<std::string_view, 5> not_of_the_history{"scenario", "seed", "world",
                                                             "wall_seconds", "peak_rss_bytes"};

bool about_the_run(std::string_view name) {
  return std::find(not_of_the_history.begin(), not_of_the_history.end(), name) ==
             not_of_the_history.end() &&
         !name.starts_with("distortion");
}

void add(const std::string& path, const nlohmann::json& from, summary_values& out) {
  if (from.is_object()) {
    for (const auto& [key, value] : from.items())
      add(path.empty() ? key : path + "." + key, value, out);
  } else if (from.is_number()) {
    out[path].number = from.get<double>();
  } else if (from.is_string()) {
    out[path].text = from.get<std::string>();
  } else if (from.is_null()) {
    out[path] = {};
  } else {
    out[path].text = json_text(from);
  }
}

} // namespace

result<summary_values> summary_values_of(std::string_view text) {
  const nlohmann::json parsed = try_json<nlohmann::json>(text);
  if (parsed.is_discarded()) return failure{"not JSON: it is damaged or cut off"};
  if (!parsed.is_object()) return failure{"not a summary: expected a mapping"};
  summary_values out;
  add("", parsed, out);
  return out;
}

std::optional<double> value_difference::relative() const {
  if (!a || !b || !a->number || !b->number || *a->number == 0) return std::nullopt;
  return (*b->number - *a->number) / std::abs(*a->number);
}

std::vector<value_difference> diff_values(const summary_values& a, const summary_values& b) {
  const auto find = [](const summary_values& in, const std::string& name) {
    const auto found = in.find(name);
    return found == in.end() ? std::nullopt : std::optional(found->second);
  };
  summary_values names = a;
  names.insert(b.begin(), b.end());
  std::vector<value_difference> out;
  for (const auto& [name, ignored] : names)
    if (about_the_run(name))
      if (auto left = find(a, name), right = find(b, name); left != right)
        out.push_back({name, std::move(left), std::move(right)});
  return out;
}

std::string to_text(const std::optional<summary_value>& value) {
  if (!value) return "-";
  if (value->number) return fmt::format("{}", *value->number);
  return value->text.value_or("null");
}

} // namespace shoal::scenarios
