// Writes JSON piece by piece. Views are large and rewritten every second, so this avoids a JSON
// tree.
#pragma once

#include "scenarios/observe/output_text.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

namespace shoal::scenarios {

class page_text {
public:
  page_text& open(char bracket) { return put(std::string_view(&bracket, 1), true); }
  page_text& close(char bracket) {
    out_.push_back(bracket);
    comma_ = true;
    return *this;
  }
  page_text& key(std::string_view name) {
    put(json_quoted(name), false);
    out_.push_back(':');
    comma_ = false;
    return *this;
  }
  page_text& text(std::string_view value) { return put(json_quoted(value), false); }
  page_text& whole(std::int64_t value) { return put(fmt::format_int(value).c_str(), false); }
  page_text& flag(bool value) { return put(value ? "true" : "false", false); }
  page_text& null() { return put("null", false); }
  /// Writes a number with six digits, or null if the number is not finite.
  page_text& number(double value) {
    if (!std::isfinite(value)) return null();
    if (value == std::floor(value) && std::abs(value) < 1e15)
      return whole(static_cast<std::int64_t>(value));
    return put(fmt::format("{:.6g}", value), false);
  }
  /// Writes nanoseconds as seconds, rounded to milliseconds, or to microseconds below a second.
  page_text& seconds(std::int64_t ns) {
    const double s = 1e-9 * static_cast<double>(ns);
    return put(std::abs(s) < 1 ? fmt::format("{:.6g}", std::round(s * 1e6) / 1e6)
                               : fmt::format("{:.10g}", std::round(s * 1e3) / 1e3),
               false);
  }
  /// Writes JSON unchanged.
  page_text& raw(std::string_view json) { return put(json, false); }
  std::string take() { return std::move(out_); }

private:
  page_text& put(std::string_view piece, bool opens) {
    if (comma_) out_.push_back(',');
    out_ += piece;
    comma_ = !opens;
    return *this;
  }
  std::string out_;
  bool comma_ = false;
};

} // namespace shoal::scenarios
