// The units that units.cpp reads, units_format.cpp writes and units_pattern.cpp matches; for these
// files only.
#pragma once

#include <cstdint>
#include <string_view>

namespace shoal::unit_table {

/// One spelling of a unit and its size in nanoseconds or bytes.
struct unit {
  std::string_view name;
  std::uint64_t scale;
};

inline constexpr std::uint64_t kibi = 1024;
inline constexpr std::uint64_t second = 1'000'000'000;

// From small to large: on equal lengths to_string takes the larger one.
inline constexpr unit duration_units[] = {{"ns", 1},
                                          {"us", 1000},
                                          {"ms", 1'000'000},
                                          {"s", second},
                                          {"min", 60 * second},
                                          {"h", 3600 * second},
                                          {"d", 86400 * second}};

inline constexpr unit size_units[] = {{"B", 1},
                                      {"kB", 1000},
                                      {"KiB", kibi},
                                      {"MB", 1'000'000},
                                      {"MiB", kibi* kibi},
                                      {"GB", 1'000'000'000},
                                      {"GiB", kibi* kibi* kibi},
                                      {"TB", 1'000'000'000'000},
                                      {"TiB", kibi* kibi* kibi* kibi}};

/// A rate is number * 10^exponent * factor bits per second. The decimal conversion rounds the first
/// product once, and the factor is a power of two, so parsing is exact to the bit.
struct rate_unit {
  std::string_view name;
  int exponent;
  double factor;
};

inline constexpr rate_unit rate_units[] = {
    {"bit", 0, 1},        {"kbit", 3, 1},       {"Mbit", 6, 1},      {"Gbit", 9, 1},
    {"Tbit", 12, 1},      {"bit/s", 0, 1},      {"kbit/s", 3, 1},    {"Mbit/s", 6, 1},
    {"Gbit/s", 9, 1},     {"Tbit/s", 12, 1},    {"B/s", 0, 8},       {"kB/s", 3, 8},
    {"MB/s", 6, 8},       {"GB/s", 9, 8},       {"TB/s", 12, 8},     {"KiB/s", 0, 0x1p13},
    {"MiB/s", 0, 0x1p23}, {"GiB/s", 0, 0x1p33}, {"TiB/s", 0, 0x1p43}};

} // namespace shoal::unit_table
