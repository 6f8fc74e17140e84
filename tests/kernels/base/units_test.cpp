#include "kernels/base/rng.hpp"
#include "kernels/base/units.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

using namespace shoal;
using namespace std::chrono_literals;

namespace {

/// The message for a text that must be refused.
template <class T>
std::string refusal(result<T> outcome) {
  return outcome.ok() ? "(accepted)" : outcome.error();
}

bool printable_line(const std::string& text) {
  for (const char c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
  return !text.empty();
}

} // namespace

TEST_CASE("durations are read exactly, in every unit") {
  CHECK(parse_duration("80ms").value() == 80ms);
  CHECK(parse_duration("80 ms").value() == 80ms);
  CHECK(parse_duration("0").value() == 0ns);
  CHECK(parse_duration("0.0").value() == 0ns);
  CHECK(parse_duration("7ns").value() == 7ns);
  CHECK(parse_duration("0.1us").value() == 100ns);
  CHECK(parse_duration("1.5s").value() == 1500ms);
  CHECK(parse_duration("2min").value() == 120s);
  CHECK(parse_duration("2m").value() == 120s);
  CHECK(parse_duration("2h").value() == 7200s);
  CHECK(parse_duration("75d").value() == 75 * 24h);
  CHECK(parse_duration("0.000000001s").value() == 1ns);
  CHECK(parse_duration("0.3s").value() == 300ms);
  CHECK(parse_duration("4.35s").value() == 4350ms); // 4.35 * 1e9 is below 4350000000 in doubles
  CHECK(parse_duration("000001.50000000000000000000000000000000000000s").value() == 1500ms);
  CHECK(parse_duration("9223372036854775807ns").value() == duration::max());
}

TEST_CASE("rates are read as bits per second, correctly rounded") {
  const auto bits = [](std::string_view text) { return parse_rate(text).value().bits_per_second; };
  CHECK(bits("100Mbit") == 1e8);
  CHECK(bits("100 Mbit/s") == 1e8);
  CHECK(bits("56kbit") == 56e3);
  CHECK(bits("0.1Gbit") == 1e8);
  CHECK(bits("1.1Mbit") == 1.1e6);
  CHECK(bits("12.5MB/s") == 1e8);
  CHECK(bits("512KiB/s") == 512.0 * 1024 * 8);
  CHECK(bits("1GiB/s") == 0x1p33);
  CHECK(bits("3Tbit") == 3e12);
  CHECK(bits("0") == 0);
  CHECK(bits("7bit") == 7);
  CHECK(parse_rate("12.5MB/s").value().bytes_per_second() == 12.5e6);
}

TEST_CASE("sizes are read as whole bytes") {
  CHECK(parse_size("512KiB").value().bytes == 512 * 1024);
  CHECK(parse_size("512 kB").value().bytes == 512'000);
  CHECK(parse_size("1.5MiB").value().bytes == 1'572'864);
  CHECK(parse_size("0.5KiB").value().bytes == 512);
  CHECK(parse_size("2TB").value().bytes == 2'000'000'000'000);
  CHECK(parse_size("1TiB").value().bytes == 1ULL << 40);
  CHECK(parse_size("0").value().bytes == 0);
  CHECK(parse_size("18446744073709551615B").value().bytes == ~0ULL);
}

TEST_CASE("fractions are read from percentages and plain numbers") {
  CHECK(parse_fraction("10%").value() == 0.1);
  CHECK(parse_fraction("10 %").value() == 0.1);
  CHECK(parse_fraction("0.1").value() == 0.1);
  CHECK(parse_fraction("1e-4").value() == 1e-4);
  CHECK(parse_fraction("150%").value() == 1.5);
  CHECK(parse_fraction("0").value() == 0);
  CHECK(parse_fraction("0.7%").value() == 0.007);
}

TEST_CASE("a number without a unit is refused with what to write") {
  CHECK(refusal(parse_duration("80")) == "'80' has no unit: write 80ms or 80s");
  CHECK(refusal(parse_rate("100")) == "'100' has no unit: write 100Mbit or 100MB/s");
  CHECK(refusal(parse_size("4")) == "'4' has no unit: write 4KiB or 4MiB");
}

TEST_CASE("an ambiguous unit is refused with what it could mean") {
  CHECK(refusal(parse_rate("100mbps")) ==
        "'100mbps' is ambiguous: write 100Mbit (bits) or 12.5MB/s (bytes)");
  CHECK(refusal(parse_rate("100Mbps")) ==
        "'100Mbps' is ambiguous: write 100Mbit (bits) or 12.5MB/s (bytes)");
  CHECK(refusal(parse_rate("56 kbps")) ==
        "'56 kbps' is ambiguous: write 56kbit (bits) or 7kB/s (bytes)");
  CHECK(refusal(parse_rate("1Gb/s")) ==
        "'1Gb/s' is ambiguous: write 1Gbit (bits) or 0.125GB/s (bytes)");
  CHECK(refusal(parse_rate("8bps")) == "'8bps' is ambiguous: write 8bit (bits) or 1B/s (bytes)");
  CHECK(refusal(parse_size("512KB")) ==
        "'512KB' is ambiguous: write 512kB (powers of 1000) or 512KiB (powers of 1024)");
  CHECK(refusal(parse_size("2G")) ==
        "'2G' is ambiguous: write 2GB (powers of 1000) or 2GiB (powers of 1024)");
}

TEST_CASE("a quantity of the wrong kind is refused with the right one") {
  CHECK(refusal(parse_rate("12MB")) == "'12MB' is an amount of data, not a rate: write 12MB/s");
  CHECK(refusal(parse_size("12MB/s")) == "'12MB/s' is a rate, not an amount of data: write 12MB");
  CHECK(refusal(parse_size("512Mbit")) ==
        "'512Mbit' is in bits, but sizes are in bytes: write 64MB");
}

TEST_CASE("a misspelt unit is refused with the right spelling") {
  CHECK(refusal(parse_duration("80MS")) == "'80MS' has the unknown unit 'MS': write 80ms");
  CHECK(refusal(parse_duration("2 hours")) == "'2 hours' has the unknown unit 'hours': write 2h");
  CHECK(refusal(parse_duration("5\xc2\xb5s")) ==
        "'5\xc2\xb5s' has the unknown unit '\xc2\xb5s': write 5us");
  CHECK(refusal(parse_rate("100mbit")) == "'100mbit' has the unknown unit 'mbit': write 100Mbit");
  CHECK(refusal(parse_size("3kib")) == "'3kib' has the unknown unit 'kib': write 3KiB");
  CHECK(refusal(parse_duration("3 parsecs")) ==
        "'3 parsecs' has the unknown unit 'parsecs': use one of ns, us, ms, s, min, h, d");
}

TEST_CASE("negative and malformed quantities are refused") {
  CHECK(refusal(parse_duration("-5ms")) == "'-5ms' is negative: a duration is 0 or more");
  CHECK(refusal(parse_rate("-5Mbit")) == "'-5Mbit' is negative: a rate is 0 or more");
  CHECK(refusal(parse_size("-5B")) == "'-5B' is negative: a size is 0 or more");
  CHECK(refusal(parse_fraction("-5%")) == "'-5%' is negative: a fraction is 0 or more");
  CHECK(refusal(parse_duration("")) ==
        "'' is not a duration: write a number and a unit, such as 80ms or 2h");
  CHECK(refusal(parse_duration("soon")) ==
        "'soon' is not a duration: write a number and a unit, such as 80ms or 2h");
  CHECK(refusal(parse_rate("1e8bit")) ==
        "'1e8bit' has an exponent: write the number out, or use a larger unit");
  CHECK(refusal(parse_fraction("ten")) == "'ten' is not a fraction: write 0.1 or 10%");
  for (const char* text : {".5s", "5.s", "1,5s", "1.2.3s", "5 ", "ms", "+5ms", " 5ms", "1_000ms",
                           "5 5ms", "nan", "inf", "infs", "0x10s"})
    CHECK_FALSE(parse_duration(text).ok());
  for (const char* text : {"%", "1e", "1e5%%", "nan", "0x1", "1 0%", ".5", "5.", " 5%", "1e-3x1"})
    CHECK_FALSE(parse_fraction(text).ok());
}

TEST_CASE("a quantity that does not fit is refused, not rounded") {
  CHECK(refusal(parse_duration("0.5ns")) ==
        "'0.5ns' is finer than a nanosecond: use fewer decimals");
  CHECK(refusal(parse_duration("1.0000000001s")) ==
        "'1.0000000001s' is finer than a nanosecond: use fewer decimals");
  CHECK(refusal(parse_duration("9223372036854775808ns")) ==
        "'9223372036854775808ns' is too long: the longest duration is 106751d (292 years)");
  CHECK(parse_duration("106751d").ok());
  CHECK_FALSE(parse_duration("106752d").ok());
  CHECK_FALSE(parse_duration("99999999999999999999999999999999d").ok());
  CHECK(refusal(parse_size("1.5B")) == "'1.5B' is not a whole number of bytes");
  CHECK(refusal(parse_size("18446744073709551616B")) ==
        "'18446744073709551616B' is too large: the largest size is 18446744073709551615B");
  CHECK(refusal(parse_rate(std::string(310, '9') + "Mbit")) ==
        "'" + std::string(48, '9') + "...' is out of range for a rate");
}

TEST_CASE("quantities are written in their shortest form") {
  CHECK(to_string(80ms) == "80ms");
  CHECK(to_string(duration(100ms)) == "100ms");
  CHECK(to_string(duration(1500ms)) == "1.5s");
  CHECK(to_string(duration(7200s)) == "2h");
  CHECK(to_string(duration(90s)) == "90s");
  CHECK(to_string(duration(300s)) == "5min");
  CHECK(to_string(duration(600s)) == "10min");
  CHECK(to_string(duration(60s)) == "1min");
  CHECK(to_string(duration(150s)) == "150s");
  CHECK(to_string(duration(3600s)) == "1h");
  CHECK(to_string(duration(36h)) == "36h");
  CHECK(to_string(duration(24h)) == "1d");
  CHECK(to_string(duration(1ns)) == "1ns");
  CHECK(to_string(duration(0ns)) == "0s");
  CHECK(to_string(duration(-80ms)) == "-80ms");
  CHECK(to_string(data_rate{1e8}) == "100Mbit");
  CHECK(to_string(data_rate{24e6}) == "24Mbit");
  CHECK(to_string(data_rate{1.5e6}) == "1.5Mbit");
  CHECK(to_string(data_rate{33.6e3}) == "33.6kbit");
  CHECK(to_string(data_rate{4194304}) == "512KiB/s");
  CHECK(to_string(data_rate{0.25}) == "0.25bit");
  CHECK(to_string(data_rate{0}) == "0bit");
  CHECK(to_string(data_size{512 * 1024}) == "512KiB");
  CHECK(to_string(data_size{1'000'000}) == "1MB");
  CHECK(to_string(data_size{1'572'864}) == "1.5MiB");
  CHECK(to_string(data_size{1536}) == "1536B");
  CHECK(to_string(data_size{0}) == "0B");
  // Nobody can write these quantities, but a log line about them must print.
  CHECK(to_string(data_rate{std::numeric_limits<double>::infinity()}) == "infbit");
  CHECK(to_string(data_rate{-std::nan("")}) == "nanbit");
  CHECK_FALSE(to_string(duration::min()).empty());
}

TEST_CASE("a written quantity reads back to the same value") {
  rng random = stream(1, "units");
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t bits = random.next();
    const auto shift = random.below(64);
    const duration time(static_cast<std::int64_t>((bits >> 1) >> shift));
    REQUIRE(parse_duration(to_string(time)).value() == time);
    const data_size size{bits >> shift};
    REQUIRE(parse_size(to_string(size)).value() == size);
    const double any = std::fabs(std::bit_cast<double>(random.next()));
    if (std::isfinite(any)) {
      CAPTURE(any);
      REQUIRE(parse_rate(to_string(data_rate{any})).value().bits_per_second == any);
    }
    const double usual = std::floor(random.uniform(0, 1e6)) * std::pow(10, random.below(7));
    REQUIRE(parse_rate(to_string(data_rate{usual})).value().bits_per_second == usual);
  }
  for (const double edge :
       {5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 1.0, 8.0, 8192.0})
    CHECK(parse_rate(to_string(data_rate{edge})).value().bits_per_second == edge);
}

TEST_CASE("no text crashes a parser or makes an unprintable message") {
  rng random = stream(2, "units");
  const std::vector<std::string> pieces = {
      "0",        "1",  "9",   ".", "-", "e",    "E9",   " ",  "ms",   "Mbit",
      "bps",      "/s", "KiB", "%", "k", "\xc2", "\xff", "\n", "\x7f", "999999999999",
      "\xc2\x80", "b",  "B"};
  const auto holds = [](const auto& outcome) {
    return outcome.ok() || printable_line(outcome.error());
  };
  for (int i = 0; i < 50000; ++i) {
    std::string text;
    for (std::uint64_t n = random.below(9); n > 0; --n) {
      if (random.below(8) == 0)
        text += static_cast<char>(random.below(256));
      else
        text += pieces[random.below(pieces.size())];
    }
    CAPTURE(text);
    REQUIRE(holds(parse_duration(text)));
    REQUIRE(holds(parse_rate(text)));
    REQUIRE(holds(parse_size(text)));
    REQUIRE(holds(parse_fraction(text)));
  }
  for (const std::string& text :
       {std::string(1'000'000, '1'), std::string(1'000'000, '1') + "ms",
        std::string(1'000'000, 'm'), "0." + std::string(1'000'000, '0') + "1s",
        std::string(1, '\0'), "1" + std::string(1, '\0') + "ms"}) {
    CHECK(refusal(parse_duration(text)).size() < 400);
    CHECK(refusal(parse_rate(text)).size() < 400);
    CHECK(refusal(parse_size(text)).size() < 400);
    CHECK(refusal(parse_fraction(text)).size() < 400);
  }
}

TEST_CASE("seconds become nanoseconds by rounding to the nearest") {
  CHECK(from_seconds(0.08) == 80ms);
  CHECK(from_seconds(1.5) == 1500ms);
  CHECK(from_seconds(-0.25) == -250ms);
  CHECK(from_seconds(0.6e-9) == 1ns);
  CHECK(from_seconds(0.4e-9) == 0ns);
  CHECK(to_seconds(80ms) == 0.08);
}
