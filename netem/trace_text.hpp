// Shared helpers of the readers of trace formats: lines, fields that know their column, times,
// problems. Internal to the trace formats.
#pragma once

#include "netem/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shoal::netem::trace_text {

/// Quotes a text, shortened and safe for one line of a terminal.
inline std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 48;
  std::string out = "'";
  for (char c : text.substr(0, longest)) out += c >= 0x20 && c < 0x7f ? c : '?';
  return out + (text.size() > longest ? "...'" : "'");
}

inline bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789.") == std::string_view::npos;
}

/// A part of a line, with its column.
struct field {
  std::string_view text;
  std::size_t column = 1; // 1-based
};

inline field trimmed(std::string_view text, std::size_t column) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {text.substr(0, 0), column};
  return {text.substr(first, text.find_last_not_of(" \t") - first + 1), column + first};
}

/// Splits `line` at the separators, and trims the parts.
inline std::vector<field> split(std::string_view line, char separator) {
  std::vector<field> out;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find(separator, at), line.size());
    out.push_back(trimmed(line.substr(at, end - at), at + 1));
    at = end + 1;
  }
  return out;
}

/// Splits `line` into words.
inline std::vector<field> words(std::string_view line) {
  std::vector<field> out;
  for (std::size_t at = line.find_first_not_of(" \t"); at != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(" \t", at), line.size());
    out.push_back({line.substr(at, end - at), at + 1});
    at = line.find_first_not_of(" \t", end);
  }
  return out;
}

/// Reads lines of at most `longest` bytes. A longer line is cut to its beginning.
class line_reader {
public:
  explicit line_reader(std::istream& in, std::size_t longest = longest_trace_line)
      : in_(*in.rdbuf()), longest_(longest) {}

  /// Errors: std::ios_base::failure of the stream's buffer.
  bool next() {
    using traits = std::istream::traits_type;
    text.clear();
    too_long = false;
    traits::int_type c = in_.sbumpc();
    if (traits::eq_int_type(c, traits::eof())) return false;
    ++number;
    for (; !traits::eq_int_type(c, traits::eof()) && traits::to_char_type(c) != '\n';
         c = in_.sbumpc()) {
      if (text.size() <= longest_)
        text += traits::to_char_type(c);
      else
        too_long = true;
    }
    if (text.ends_with('\r')) text.pop_back();
    if (number == 1 && text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
    return true;
  }

  std::string text;
  std::size_t number = 0;
  bool too_long = false;

private:
  std::streambuf& in_;
  std::size_t longest_;
};

/// The base of a reader of one format. A derived class reads rows; faults go to `out_`.
class reader {
public:
  /// `unit` applies to times without a unit.
  reader(std::istream& in, std::string unit, std::size_t longest = longest_trace_line)
      : lines_(in, longest), longest_(longest), unit_(std::move(unit)) {}

protected:
  void problem(const field& where, std::string message, std::string unknown = {}) {
    if (out_.problems.size() == most_trace_problems) return;
    const bool shown = !lines_.too_long && lines_.text.size() <= longest_trace_line;
    out_.problems.push_back({std::max<std::size_t>(lines_.number, 1), where.column,
                             std::max<std::size_t>(where.text.size(), 1), std::move(message),
                             std::move(unknown), shown ? lines_.text : std::string()});
  }

  /// The next line with content, without text after '#'. A line that is too long is reported, and
  /// nothing is returned for it.
  std::optional<std::string_view> next_line() {
    while (out_.problems.size() < most_trace_problems && lines_.next()) {
      if (lines_.too_long) {
        problem({lines_.text, 1}, fmt::format("a line of more than {} bytes", longest_));
        return std::nullopt;
      }
      std::string_view line = lines_.text;
      line = line.substr(0, line.find('#'));
      if (!trimmed(line, 1).text.empty()) return line;
    }
    return std::nullopt;
  }

  std::optional<duration> time(const field& where, const char* name) {
    if (where.text.empty()) {
      problem(where, fmt::format("the {} is missing", name));
      return std::nullopt;
    }
    const bool bare = is_number(where.text);
    auto value = parse_duration(bare ? std::string(where.text) + unit_ : std::string(where.text));
    // `forever` is not a time at which a session can begin or end.
    if (value && *value == forever) {
      problem(where, fmt::format("{}: {} is too long", name, in_quotes(where.text)));
      return std::nullopt;
    }
    if (value) return *value;
    // The number has more decimals than nanoseconds.
    if (const auto scale = parse_duration("1" + unit_);
        bare && scale && value.error().find("finer") != std::string::npos) {
      double number = 0;
      const auto [end, bad] =
          std::from_chars(where.text.data(), where.text.data() + where.text.size(), number);
      if (bad == std::errc{} && number * to_seconds(*scale) < 9e9)
        return from_seconds(number * to_seconds(*scale));
    }
    problem(where, fmt::format("{}: {}", name, value.error()));
    return std::nullopt;
  }

  line_reader lines_;
  std::size_t longest_;
  std::string unit_;
  trace_result out_;
};

} // namespace shoal::netem::trace_text
