#include "kernels/base/units.hpp"
#include "kernels/base/units_table.hpp"

#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

namespace shoal {

using namespace unit_table;

namespace {

/// value / scale in decimal, or nothing if that takes more than 18 decimals.
std::optional<std::string> quotient(std::uint64_t value, std::uint64_t scale) {
  std::string out = std::to_string(value / scale);
  std::uint64_t rest = value % scale;
  if (rest != 0) out += '.';
  for (int decimals = 0; rest != 0; ++decimals) {
    if (decimals == 18) return std::nullopt;
    rest *= 10;
    out += static_cast<char>('0' + rest / scale);
    rest %= scale;
  }
  return out;
}

/// Whether `text` should be shown rather than `best`, which has a smaller unit.
bool better(std::string_view text, std::string_view best) {
  if (best.empty()) return true;
  const bool small = text.starts_with("0."), best_small = best.starts_with("0.");
  if (small != best_small) return best_small;
  return text.size() <= best.size();
}

std::string shortest(std::uint64_t value, std::span<const unit> units) {
  std::string best;
  for (const unit& u : units) {
    if (value == 0 && !best.empty()) break;
    if (auto number = quotient(value, u.scale)) {
      number->append(u.name);
      if (better(*number, best)) best = std::move(*number);
    }
  }
  return best;
}

/// The decimal number digits * 10^exponent without an exponent: ("125", -1) is "12.5".
std::string plain(std::string_view digits, int exponent) {
  std::string out(digits);
  if (exponent >= 0) return out.append(static_cast<std::size_t>(exponent), '0');
  const auto decimals = static_cast<std::size_t>(-exponent);
  if (out.size() <= decimals) out.insert(0, decimals + 1 - out.size(), '0');
  return out.insert(out.size() - decimals, ".");
}

/// The value with the fewest digits, then the shorter text, then the larger unit.
std::string roundest(std::uint64_t value) {
  std::string best;
  std::size_t best_digits = 0;
  for (const unit& u : duration_units) {
    auto number = quotient(value, u.scale);
    if (!number || (!best.empty() && number->starts_with("0."))) continue;
    const std::size_t digits = number->size();
    number->append(u.name);
    if (!best.empty() &&
        (digits > best_digits || (digits == best_digits && number->size() > best.size())))
      continue;
    best = std::move(*number);
    best_digits = digits;
  }
  return best;
}

} // namespace

std::string to_string(duration value) {
  const auto count = static_cast<std::uint64_t>(value.count());
  if (value.count() == 0) return "0s";
  if (value.count() < 0) return "-" + roundest(0 - count);
  return roundest(count);
}

std::string to_string(data_size value) {
  return shortest(value.bytes, size_units);
}

std::string to_string(data_rate value) {
  const double bits = value.bits_per_second;
  if (bits < 0) return "-" + to_string(data_rate{-bits});
  if (std::isnan(bits)) return "nanbit";
  if (std::isinf(bits)) return "infbit";
  if (bits == 0) return "0bit";
  char buffer[400];
  // The shortest digits that read back as the same double, "d.ddde+xx", moved by each prefix.
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, bits, std::chars_format::scientific);
  const std::string_view text(buffer, static_cast<std::size_t>(end.ptr - buffer));
  const std::size_t e = text.find('e');
  std::string digits(text.substr(0, 1));
  if (e > 2) digits += text.substr(2, e - 2);
  int exponent = 0;
  const char* exponent_begin = text.data() + e + (text[e + 1] == '+' ? 2 : 1);
  std::from_chars(exponent_begin, end.ptr, exponent);
  exponent -= static_cast<int>(digits.size()) - 1;

  std::string best;
  for (const rate_unit& u : rate_units) {
    if (u.factor != 1 || u.name.ends_with("/s")) continue;
    std::string candidate = plain(digits, exponent - u.exponent) + std::string(u.name);
    if (better(candidate, best)) best = std::move(candidate);
  }
  // Network rates are usual in bits. Bytes are chosen only where powers of two make them shorter.
  for (const rate_unit& u : rate_units) {
    if (u.factor <= 8 || bits < u.factor) continue;
    const auto last =
        std::to_chars(buffer, buffer + sizeof buffer, bits / u.factor, std::chars_format::fixed);
    std::string candidate = std::string(buffer, last.ptr) + std::string(u.name);
    if (candidate.size() < best.size()) best = std::move(candidate);
  }
  return best;
}

duration from_seconds(double seconds) {
  SHOAL_CHECK(std::isfinite(seconds) && std::fabs(seconds) < 9e9,
              "from_seconds needs a finite value below 9e9");
  return duration(std::llround(seconds * 1e9));
}

} // namespace shoal
