#include "scenarios/sweep/vary.hpp"

#include "kernels/base/portable_math.hpp"
#include "kernels/base/text_fields.hpp"
#include "kernels/base/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace shoal::scenarios {

namespace {

enum class quantity_kind { number, percent, time, rate, size };

struct quantity {
  quantity_kind kind = quantity_kind::number;
  double value = 0;
};

std::optional<double> finite_number_of(std::string_view text) {
  const auto out = number_of<double>(text);
  return out && std::isfinite(*out) ? out : std::nullopt;
}

std::optional<quantity> quantity_of(std::string_view text) {
  if (const auto plain = finite_number_of(text)) return quantity{quantity_kind::number, *plain};
  if (text.ends_with('%')) {
    const auto percent = finite_number_of(text.substr(0, text.size() - 1));
    return percent ? std::optional(quantity{quantity_kind::percent, *percent}) : std::nullopt;
  }
  if (const auto time = parse_duration(text))
    return quantity{quantity_kind::time, to_seconds(*time)};
  if (const auto size = parse_size(text))
    return quantity{quantity_kind::size, static_cast<double>(size->bytes)};
  if (const auto rate = parse_rate(text))
    return quantity{quantity_kind::rate, rate->bits_per_second};
  return std::nullopt;
}

std::string text_of(const quantity& what) {
  switch (what.kind) {
  case quantity_kind::time:
    return to_string(from_seconds(what.value));
  case quantity_kind::rate:
    return to_string(data_rate{what.value});
  case quantity_kind::size:
    return to_string(data_size{static_cast<std::uint64_t>(std::llround(what.value))});
  case quantity_kind::percent:
    return fmt::format("{}%", what.value);
  case quantity_kind::number:
    break;
  }
  return fmt::format("{}", what.value);
}

/// Rounds to so many digits that the last bits of a quotient or a logarithm do not reach a
/// scenario.
double rounded(double value, int digits) {
  return finite_number_of(fmt::format("{:.{}g}", value, digits)).value_or(value);
}

/// Splits at commas outside of brackets and quotes.
std::vector<std::string> listed(std::string_view text) {
  std::vector<std::string> out(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      out.emplace_back();
      continue;
    }
    out.back() += c;
  }
  return out;
}

struct range {
  std::string_view from, to, count;
};

/// Matches 'A..B:N' where A begins like a quantity, since '../x' is a plain value.
std::optional<range> range_of(std::string_view text) {
  const auto dots = text.find("..");
  if (dots == std::string_view::npos || dots == 0 || text.find(',') != std::string_view::npos)
    return std::nullopt;
  if (std::string_view("+-.0123456789").find(text.front()) == std::string_view::npos ||
      text.find('/') < dots)
    return std::nullopt;
  range out{text.substr(0, dots), text.substr(dots + 2), {}};
  if (const auto colon = out.to.find(':'); colon != std::string_view::npos) {
    out.count = out.to.substr(colon + 1);
    out.to = out.to.substr(0, colon);
  }
  return out;
}

result<std::vector<std::string>> values_of(const range& what) {
  auto from = quantity_of(what.from), to = quantity_of(what.to);
  if (!from) return failure{fmt::format("'{}' is no number with or without a unit", what.from)};
  if (!to) return failure{fmt::format("'{}' is no number with or without a unit", what.to)};
  if (from->value == 0 && from->kind == quantity_kind::number) from->kind = to->kind;
  if (from->kind != to->kind)
    return failure{fmt::format("'{}' and '{}' are not of one kind", what.from, what.to)};
  auto count_text = what.count;
  const bool logarithmic = count_text.ends_with("log");
  if (logarithmic) count_text.remove_suffix(3);
  const auto known_count = number_of<std::size_t>(count_text);
  if (!known_count)
    return failure{fmt::format("a range says how many values it has, as in {}..{}:5 or {}..{}:5log",
                               what.from, what.to, what.from, what.to)};
  if (from->value > to->value)
    return failure{fmt::format("the range runs backwards: {} is above {}", what.from, what.to)};
  if (from->value == to->value)
    return failure{fmt::format("the range is empty: both ends are {}", what.from)};
  const std::size_t count = *known_count;
  if (count < 2)
    return failure{
        fmt::format("a range has at least two values, its ends; this one has {}", count)};
  if (count > most_cells)
    return failure{fmt::format("{} values; at most {} cells", count, most_cells)};
  if (logarithmic && from->value <= 0) return failure{"equal ratios need a beginning above 0"};
  std::vector<std::string> out{std::string(what.from)};
  for (std::size_t i = 1; i + 1 < count; ++i) {
    const auto part = static_cast<double>(i) / static_cast<double>(count - 1);
    const auto value = logarithmic
                           ? rounded(from->value * portable::pow(to->value / from->value, part), 6)
                           : rounded(from->value + (to->value - from->value) * part, 12);
    out.push_back(text_of({from->kind, value}));
  }
  out.emplace_back(what.to);
  return out;
}

} // namespace

result<varied> parse_varied(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0)
    return failure{"expected PATH=VALUES, for example averaging.group_size=4,8,16"};
  varied out{std::string(text.substr(0, equals)), {}};
  const auto said = text.substr(equals + 1);
  if (const auto as_range = range_of(said)) {
    auto values = values_of(*as_range);
    if (!values) return failure{values.error()};
    out.values = std::move(*values);
  } else {
    out.values = listed(said);
  }
  std::set<std::string_view> seen;
  for (const auto& value : out.values) {
    if (value.empty()) return failure{said.empty() ? "no values" : "an empty value"};
    if (!seen.insert(value).second) return failure{fmt::format("{} is there twice", value)};
  }
  return out;
}

result<std::vector<std::uint64_t>> parse_seeds(std::string_view text) {
  std::uint64_t first = 1, last = 0;
  std::vector<std::uint64_t> out;
  const auto dots = text.find("..");
  if (text.find(',') != std::string_view::npos) {
    for (const auto& word : listed(text)) {
      if (!read_number(word, first)) return failure{fmt::format("'{}' is no seed", word)};
      if (std::find(out.begin(), out.end(), first) != out.end())
        return failure{fmt::format("{} is there twice", first)};
      out.push_back(first);
    }
    return out;
  }
  if (dots != std::string_view::npos
          ? !read_number(text.substr(0, dots), first) || !read_number(text.substr(dots + 2), last)
          : !read_number(text, last))
    return failure{
        fmt::format("'{}': expected how many, a list or a range, as in 20, 3,7,11 or 5..9", text)};
  if (dots != std::string_view::npos && first > last)
    return failure{fmt::format("the range runs backwards: {} is above {}", first, last)};
  if (last < first) return failure{"at least one seed is needed"};
  if (last - first >= most_cells) return failure{fmt::format("more than {} seeds", most_cells)};
  for (auto seed = first;; ++seed) {
    out.push_back(seed);
    if (seed == last) return out;
  }
}

std::optional<double> magnitude_of(std::string_view value) {
  const auto out = quantity_of(value);
  return out ? std::optional(out->value) : std::nullopt;
}

} // namespace shoal::scenarios
