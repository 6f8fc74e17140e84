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

/// The value that `text` describes. Json is nlohmann::json or nlohmann::ordered_json, which keeps
/// the order of keys. Throws nlohmann::json::parse_error if `text` is no JSON.
template <class Json>
Json parse_json(std::string_view text);

/// The same, but a discarded value if `text` is no JSON.
template <class Json>
Json try_json(std::string_view text);

extern template nlohmann::json parse_json(std::string_view);
extern template nlohmann::ordered_json parse_json(std::string_view);
extern template nlohmann::json try_json(std::string_view);
extern template nlohmann::ordered_json try_json(std::string_view);

} // namespace shoal
