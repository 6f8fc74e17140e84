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

template <class Json>
Json parse_json(std::string_view text) {
  return Json::parse(text);
}

template <class Json>
Json try_json(std::string_view text) {
  return Json::parse(text, nullptr, false);
}

template json parse_json(std::string_view);
template ordered_json parse_json(std::string_view);
template json try_json(std::string_view);
template ordered_json try_json(std::string_view);

} // namespace shoal
