// JSON as text and back. The library's dump() and parse() are templates of some thousand lines that
// each source would compile again; these functions are compiled once.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

namespace shoal {

/// `value` in one line, or with `indent` spaces for each level. Throws nlohmann::json::type_error
/// if a string in `value` is no UTF-8.
std::string json_text(const nlohmann::json& value, int indent = -1);
std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

/// The same, with U+FFFD for what is no UTF-8. Throws nothing.
std::string clean_json_text(const nlohmann::json& value, int indent = -1);
std::string clean_json_text(const nlohmann::ordered_json& value, int indent = -1);

/// Throws nlohmann::json::parse_error if `text` is no JSON.
nlohmann::json parse_json(std::string_view text);
nlohmann::ordered_json parse_ordered_json(std::string_view text);

/// A discarded value if `text` is no JSON.
nlohmann::json try_json(std::string_view text);
nlohmann::ordered_json try_ordered_json(std::string_view text);

} // namespace shoal
