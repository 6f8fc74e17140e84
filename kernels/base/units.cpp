#include "kernels/base/units.hpp"

#include "kernels/base/units_table.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <variant>

namespace shoal {

using namespace unit_table;

namespace {

constexpr std::string_view duration_help = "write a number and a unit, such as 80ms or 2h";
constexpr std::string_view rate_help = "write a number and a unit, such as 100Mbit or 12.5MB/s";
constexpr std::string_view size_help = "write a number and a unit, such as 512KiB or 2GB";
constexpr std::string_view fraction_help = "write 0.1 or 10%";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

/// The length of the UTF-8 sequence at the start of `text`, 0 if there is none.
std::size_t utf8_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xc2 ? 0
                             : lead < 0xe0 ? 2
                             : lead < 0xf0 ? 3
                             : lead < 0xf5 ? 4
                                           : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  return length;
}

/// `text` in quotes for a one-line message: long text is cut, and '?' replaces unprintable
/// characters.
std::string quoted(std::string_view text) {
  constexpr std::size_t longest = 48;
  std::string out = "'";
  while (!text.empty()) {
    if (out.size() > longest) {
      out += "...";
      break;
    }
    const std::size_t length = utf8_length(text);
    const auto lead = static_cast<unsigned char>(text[0]);
    // 0xc2 0x80..0x9f are control characters too.
    const bool control = length == 0 || lead < 0x20 || lead == 0x7f ||
                         (lead == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0);
    if (control)
      out += '?';
    else
      out += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out + "'";
}

/// "12.5 MiB" is number "12.5" (whole "12", fraction "5") and unit "MiB".
struct quantity {
  std::string_view text, number, whole, fraction, unit;
  bool is_zero() const { return number.find_first_not_of("0.") == std::string_view::npos; }
};

failure malformed(std::string_view text, std::string_view noun, std::string_view help) {
  return {quoted(text) + " is not a " + std::string(noun) + ": " + std::string(help)};
}

result<quantity> split(std::string_view text, std::string_view noun, std::string_view help) {
  if (text.size() > 1 && text[0] == '-' && is_digit(text[1]))
    return failure{quoted(text) + " is negative: a " + std::string(noun) + " is 0 or more"};
  std::size_t at = 0;
  const auto digits = [&] {
    const std::size_t begin = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return text.substr(begin, at - begin);
  };
  quantity out;
  out.text = text;
  out.whole = digits();
  if (out.whole.empty()) return malformed(text, noun, help);
  if (at < text.size() && text[at] == '.') {
    ++at;
    out.fraction = digits();
    if (out.fraction.empty()) return malformed(text, noun, help);
  }
  out.number = text.substr(0, at);
  while (at < text.size() && text[at] == ' ') ++at;
  out.unit = text.substr(at);
  const bool dangling = out.unit.empty() && at != out.number.size();
  const bool has_number = !out.unit.empty() && (is_digit(out.unit[0]) || out.unit[0] == '.' ||
                                                out.unit[0] == ',' || out.unit[0] == '_');
  if (dangling || has_number) return malformed(text, noun, help);
  if (out.unit.size() > 1 && (out.unit[0] == 'e' || out.unit[0] == 'E') &&
      (is_digit(out.unit[1]) || out.unit[1] == '-' || out.unit[1] == '+'))
    return failure{quoted(text) + " has an exponent: write the number out, or use a larger unit"};
  return out;
}

/// A number in the form in which a suggestion repeats it.
std::string shown(std::string_view number) {
  return number.size() <= 24 ? std::string(number) : std::string(number.substr(0, 21)) + "...";
}

failure no_unit(const quantity& q, std::string_view one, std::string_view other) {
  const std::string number = shown(q.number);
  return {quoted(q.text) + " has no unit: write " + number + std::string(one) + " or " + number +
          std::string(other)};
}

failure misspelt(const quantity& q, std::string_view unit) {
  return {quoted(q.text) + " has the unknown unit " + quoted(q.unit) + ": write " +
          shown(q.number) + std::string(unit)};
}

failure unknown_unit(const quantity& q, std::string_view units) {
  return {quoted(q.text) + " has the unknown unit " + quoted(q.unit) + ": use one of " +
          std::string(units)};
}

/// The number divided by eight, for messages that turn bits into bytes.
std::string eighth(std::string_view number) {
  if (number.size() > 24) return "...";
  double value = 0;
  std::from_chars(number.data(), number.data() + number.size(), value);
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value / 8, std::chars_format::fixed);
  return std::string(buffer, end.ptr);
}

/// 'm' of "mbps", '\0' of "bps". Nothing if `text` is not [kmgt]? followed by one of `ends`.
std::optional<char> prefix_before(std::string_view text, std::span<const std::string_view> ends) {
  const std::string word = lower(text);
  for (const std::string_view end : ends) {
    if (word == end) return '\0';
    if (word.size() == end.size() + 1 && word.ends_with(end) &&
        std::string_view("kmgt").find(word[0]) != std::string_view::npos)
      return word[0];
  }
  return std::nullopt;
}

/// Decimal prefixes in their spelling: k, M, G, T.
std::string decimal_prefix(char c) {
  if (c == '\0') return "";
  return std::string(1, c == 'k' ? 'k' : static_cast<char>(c - 'a' + 'A'));
}
std::string binary_prefix(char c) {
  return std::string(1, static_cast<char>(c - 'a' + 'A')) + "i";
}

enum class inexact { fraction_left, too_large };

/// number * scale as an integer, or the reason why it is none. Works on the decimal digits, without
/// rounding.
std::variant<std::uint64_t, inexact> exact_product(const quantity& q, std::uint64_t scale) {
  std::uint64_t carry = 0;
  for (std::size_t i = q.fraction.size(); i-- > 0;) {
    const std::uint64_t sum = static_cast<std::uint64_t>(q.fraction[i] - '0') * scale + carry;
    if (sum % 10 != 0) return inexact::fraction_left;
    carry = sum / 10;
  }
  std::uint64_t value = 0;
  for (const char c : q.whole)
    if (__builtin_mul_overflow(value, 10U, &value) ||
        __builtin_add_overflow(value, static_cast<std::uint64_t>(c - '0'), &value))
      return inexact::too_large;
  if (__builtin_mul_overflow(value, scale, &value) || __builtin_add_overflow(value, carry, &value))
    return inexact::too_large;
  return value;
}

} // namespace

result<duration> parse_duration(std::string_view text) {
  const auto q = split(text, "duration", duration_help);
  if (!q) return failure{q.error()};
  if (q->unit.empty()) {
    if (q->is_zero()) return duration::zero();
    return no_unit(*q, "ms", "s");
  }
  std::uint64_t scale = q->unit == "m" ? 60 * second : 0;
  for (const unit& u : duration_units)
    if (q->unit == u.name) scale = u.scale;
  if (scale == 0) {
    constexpr std::pair<std::string_view, std::string_view> habits[] = {
        {"sec", "s"},     {"secs", "s"},       {"second", "s"},    {"seconds", "s"},
        {"mins", "min"},  {"minute", "min"},   {"minutes", "min"}, {"hr", "h"},
        {"hrs", "h"},     {"hour", "h"},       {"hours", "h"},     {"day", "d"},
        {"days", "d"},    {"msec", "ms"},      {"usec", "us"},     {"nsec", "ns"},
        {"millis", "ms"}, {"\xc2\xb5s", "us"}, {"\xce\xbcs", "us"}};
    const std::string word = lower(q->unit);
    for (const auto& [habit, right] : habits)
      if (word == habit) return misspelt(*q, right);
    for (const unit& u : duration_units)
      if (word == u.name) return misspelt(*q, u.name);
    return unknown_unit(*q, "ns, us, ms, s, min, h, d");
  }
  const auto product = exact_product(*q, scale);
  const auto* value = std::get_if<std::uint64_t>(&product);
  if (value == nullptr && std::get<inexact>(product) == inexact::fraction_left)
    return failure{quoted(text) + " is finer than a nanosecond: use fewer decimals"};
  if (value == nullptr || *value > std::numeric_limits<std::int64_t>::max())
    return failure{quoted(text) + " is too long: the longest duration is 106751d (292 years)"};
  return duration(static_cast<std::int64_t>(*value));
}

result<data_rate> parse_rate(std::string_view text) {
  const auto q = split(text, "rate", rate_help);
  if (!q) return failure{q.error()};
  if (q->unit.empty()) {
    if (q->is_zero()) return data_rate{0};
    return no_unit(*q, "Mbit", "MB/s");
  }
  const rate_unit* found = nullptr;
  for (const rate_unit& u : rate_units)
    if (q->unit == u.name) found = &u;
  if (found == nullptr) {
    const std::string number = shown(q->number);
    for (const unit& u : size_units)
      if (q->unit == u.name)
        return failure{quoted(text) + " is an amount of data, not a rate: write " + number +
                       std::string(u.name) + "/s"};
    constexpr std::string_view ambiguous[] = {"bps", "b/s", "b"};
    if (const auto prefix = prefix_before(q->unit, ambiguous)) {
      const std::string letter = decimal_prefix(*prefix);
      return failure{quoted(text) + " is ambiguous: write " + number + letter + "bit (bits) or " +
                     eighth(number) + letter + "B/s (bytes)"};
    }
    const std::string word = lower(q->unit);
    for (const rate_unit& u : rate_units)
      if (word == lower(u.name) || word == lower(u.name) + "s") return misspelt(*q, u.name);
    return unknown_unit(*q,
                        "bit, kbit, Mbit, Gbit, Tbit, B/s, kB/s, KiB/s, MB/s, MiB/s, GB/s, GiB/s");
  }
  const std::string decimal = std::string(q->number) + "e" + std::to_string(found->exponent);
  double value = 0;
  const auto end = std::from_chars(decimal.data(), decimal.data() + decimal.size(), value);
  value *= found->factor;
  if (end.ec != std::errc() || !std::isfinite(value))
    return failure{quoted(text) + " is out of range for a rate"};
  return data_rate{value};
}

result<data_size> parse_size(std::string_view text) {
  const auto q = split(text, "size", size_help);
  if (!q) return failure{q.error()};
  if (q->unit.empty()) {
    if (q->is_zero()) return data_size{0};
    return no_unit(*q, "KiB", "MiB");
  }
  std::uint64_t scale = 0;
  for (const unit& u : size_units)
    if (q->unit == u.name) scale = u.scale;
  if (scale == 0) {
    const std::string number = shown(q->number);
    constexpr std::string_view bits[] = {"bit", "bits"};
    if (const auto prefix = prefix_before(q->unit, bits))
      return failure{quoted(text) + " is in bits, but sizes are in bytes: write " + eighth(number) +
                     decimal_prefix(*prefix) + "B"};
    for (const unit& u : size_units)
      if (q->unit == std::string(u.name) + "/s")
        return failure{quoted(text) + " is a rate, not an amount of data: write " + number +
                       std::string(u.name)};
    constexpr std::string_view bare[] = {"b", ""};
    const auto prefix = prefix_before(q->unit, bare);
    if (prefix && *prefix != '\0')
      return failure{quoted(text) + " is ambiguous: write " + number + decimal_prefix(*prefix) +
                     "B (powers of 1000) or " + number + binary_prefix(*prefix) +
                     "B (powers of 1024)"};
    const std::string word = lower(q->unit);
    if (word == "byte" || word == "bytes") return misspelt(*q, "B");
    for (const unit& u : size_units)
      if (word == lower(u.name)) return misspelt(*q, u.name);
    return unknown_unit(*q, "B, kB, KiB, MB, MiB, GB, GiB, TB, TiB");
  }
  const auto product = exact_product(*q, scale);
  if (const auto* value = std::get_if<std::uint64_t>(&product)) return data_size{*value};
  if (std::get<inexact>(product) == inexact::fraction_left)
    return failure{quoted(text) + " is not a whole number of bytes"};
  return failure{quoted(text) + " is too large: the largest size is 18446744073709551615B"};
}

result<double> parse_fraction(std::string_view text) {
  if (text.size() > 1 && text[0] == '-' && is_digit(text[1]))
    return failure{quoted(text) + " is negative: a fraction is 0 or more"};
  std::string_view number = text;
  const bool percent = number.ends_with('%');
  if (percent) {
    number.remove_suffix(1);
    while (number.ends_with(' ')) number.remove_suffix(1);
  }
  if (number.empty() || !is_digit(number[0]) || !is_digit(number.back()))
    return malformed(text, "fraction", fraction_help);
  // '10%' is read as 10e-2, which rounds once; an exponent is allowed only without '%'.
  const std::string decimal = std::string(number) + (percent ? "e-2" : "");
  const char* end = decimal.data() + decimal.size();
  double value = 0;
  const auto read = std::from_chars(decimal.data(), end, value);
  if (read.ec == std::errc::result_out_of_range)
    return failure{quoted(text) + " is out of range for a fraction"};
  if (read.ec != std::errc() || read.ptr != end) return malformed(text, "fraction", fraction_help);
  return value;
}

} // namespace shoal
