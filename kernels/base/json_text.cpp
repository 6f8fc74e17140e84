#include "kernels/base/json_text.hpp"

#include <nlohmann/json.hpp>

namespace shoal {

using nlohmann::json;
using nlohmann::ordered_json;

std::string json_text(const json& value, int indent) {
  return value.dump(indent);
}
std::string json_text(const ordered_json& value, int indent) {
  return value.dump(indent);
}

std::string clean_json_text(const json& value, int indent) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}
std::string clean_json_text(const ordered_json& value, int indent) {
  return value.dump(indent, ' ', false, ordered_json::error_handler_t::replace);
}

json parse_json(std::string_view text) {
  return json::parse(text);
}
ordered_json parse_ordered_json(std::string_view text) {
  return ordered_json::parse(text);
}

json try_json(std::string_view text) {
  return json::parse(text, nullptr, false);
}
ordered_json try_ordered_json(std::string_view text) {
  return ordered_json::parse(text, nullptr, false);
}

} // namespace shoal
