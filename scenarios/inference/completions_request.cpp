#include "scenarios/inference/completions_request.hpp"

#include "kernels/base/json_text.hpp"
#include "scenarios/observe/listen_address.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

namespace shoal::scenarios {

namespace {

using json = nlohmann::json;

/// Equal in a time that does not depend on where the texts differ.
bool same_secret(std::string_view a, std::string_view b) {
  unsigned different = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i)
    different |= static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^
                                       static_cast<unsigned char>(b.empty() ? 0 : b[i % b.size()]));
  return different == 0;
}

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

bool has_access(const http_order& from, const http_rules& rules) {
  if (rules.token.empty()) return true;
  constexpr std::string_view scheme = "Bearer ";
  const auto given = from.authorization.value_or("");
  return given.size() > scheme.size() && same_word(given.substr(0, scheme.size()), scheme) &&
         same_secret(given.substr(scheme.size()), rules.token);
}

bool is_json_type(const http_order& from) {
  auto type = from.content_type.value_or("");
  type = type.substr(0, type.find(';'));
  while (type.ends_with(' ')) type.remove_suffix(1);
  return same_word(type, "application/json");
}

/// Reads the fields of an object. Only the first error is kept.
class field_reader {
public:
  explicit field_reader(const json& from) : from_(from) {}

  std::optional<http_refusal> error;

  void wrong(const std::string& field, const std::string& why) {
    if (!error) error = http_refusal{400, fmt::format("'{}' {}", field, why), field, {}};
  }
  const json* find(const char* field) const {
    const auto at = from_.find(field);
    return at == from_.end() || at->is_null() ? nullptr : &*at;
  }
  void number(const char* field, double low, double high, double& into) {
    const auto* at = find(field);
    if (at == nullptr) return;
    if (!at->is_number()) return wrong(field, "is no number");
    const auto value = at->get<double>();
    if (!(value >= low && value <= high))
      return wrong(field, fmt::format("has to be from {} to {}", low, high));
    into = value;
  }
  std::optional<std::uint64_t> whole(const char* field, std::uint64_t low, std::uint64_t high) {
    const auto* at = find(field);
    if (at == nullptr) return std::nullopt;
    if (!at->is_number_unsigned() || at->get<std::uint64_t>() < low ||
        at->get<std::uint64_t>() > high) {
      wrong(field, fmt::format("has to be a whole number from {} to {}", low, high));
      return std::nullopt;
    }
    return at->get<std::uint64_t>();
  }
  void flag(const char* field, bool& into) {
    const auto* at = find(field);
    if (at == nullptr) return;
    if (!at->is_boolean()) return wrong(field, "has to be true or false");
    into = at->get<bool>();
  }
  /// The field may only have this value, because another one changes the answer.
  void only(const char* field, const json& value) {
    const auto* at = find(field);
    if (at != nullptr && *at != value && !(at->is_structured() && at->empty()))
      wrong(field, fmt::format("is not supported, except as {}", json_text(value)));
  }

private:
  const json& from_;
};

void read_stops(field_reader& fields, std::vector<std::string>& into) {
  const auto* at = fields.find("stop");
  if (at == nullptr) return;
  const auto all = at->is_array() ? *at : json::array({*at});
  if (all.size() > most_stops)
    return fields.wrong("stop", fmt::format("has at most {} texts", most_stops));
  for (const auto& each : all) {
    if (!each.is_string()) return fields.wrong("stop", "has to be a text or a list of texts");
    const auto& text = each.get_ref<const std::string&>();
    if (text.empty() || text.size() > most_stop_bytes)
      return fields.wrong("stop", fmt::format("has texts of 1 to {} bytes", most_stop_bytes));
    into.push_back(text);
  }
}

/// The text of a message: a string, or a list of parts that are all text.
std::optional<std::string> content_of(const json& message) {
  const auto at = message.find("content");
  if (at == message.end()) return std::nullopt;
  if (at->is_string()) return at->get<std::string>();
  if (!at->is_array()) return std::nullopt;
  std::string out;
  for (const auto& part : *at) {
    if (!part.is_object()) return std::nullopt;
    const auto text = part.find("text");
    if (part.value("type", json()) != "text" || text == part.end() || !text->is_string())
      return std::nullopt;
    out += text->get_ref<const std::string&>();
  }
  return out;
}

/// The messages' texts in their order, with a line feed between two. The models that Shoal serves
/// have no template for chats: they go on with a text.
void read_messages(field_reader& fields, std::string& into) {
  const auto* all = fields.find("messages");
  if (all == nullptr || !all->is_array() || all->empty())
    return fields.wrong("messages", "has to be a list of messages, and not empty");
  for (const auto& each : *all) {
    const auto text = each.is_object() ? content_of(each) : std::nullopt;
    if (!text) return fields.wrong("messages", "has a message without a text in 'content'");
    if (!into.empty()) into += '\n';
    into += *text;
  }
}

void read_prompt(field_reader& fields, std::string& into) {
  const auto* at = fields.find("prompt");
  if (at == nullptr) return fields.wrong("prompt", "is missing");
  const auto& text = at->is_array() && at->size() == 1 ? at->front() : *at;
  if (!text.is_string()) return fields.wrong("prompt", "has to be one text");
  into = text.get<std::string>();
}

http_answer read_completion(std::string_view body, bool chat, const http_rules& rules) {
  if (body.size() > most_request_bytes)
    return http_refusal{413, fmt::format("a request has at most {} bytes", most_request_bytes)};
  const auto all = try_json<json>(body);
  if (all.is_discarded()) return http_refusal{400, "the body is no JSON"};
  if (!all.is_object()) return http_refusal{400, "the body is no JSON object"};
  field_reader fields(all);
  completion_order out;
  out.chat = chat;
  if (const auto* model = fields.find("model"); model != nullptr && *model != rules.model)
    return http_refusal{404, fmt::format("there is no such model here: this is '{}'", rules.model),
                        "model", "model_not_found"};
  if (chat)
    read_messages(fields, out.prompt);
  else
    read_prompt(fields, out.prompt);
  if (out.prompt.empty()) fields.wrong(chat ? "messages" : "prompt", "has no text");
  const auto tokens = fields.whole("max_tokens", 1, 1U << 24);
  const auto completion = fields.whole("max_completion_tokens", 1, 1U << 24);
  if (completion || tokens)
    out.tokens = static_cast<std::uint32_t>(completion ? *completion : *tokens);
  if (!chat && !out.tokens) out.tokens = 16; // the protocol's default
  fields.number("temperature", 0, 2, out.sampling.temperature);
  fields.number("top_p", 0, 1, out.sampling.top_p);
  // Drawing among nothing means the likeliest token.
  if (out.sampling.top_p == 0) out.sampling = {.temperature = 0};
  if (const auto k = fields.whole("top_k", 0, 1U << 24)) out.sampling.top_k = *k;
  out.seed = fields.whole("seed", 0, (std::uint64_t{1} << 63) - 1);
  read_stops(fields, out.stops);
  fields.flag("stream", out.stream);
  fields.flag("shoal_news", out.news);
  if (const auto* options = fields.find("stream_options")) {
    if (!options->is_object())
      fields.wrong("stream_options", "is no object");
    else
      field_reader(*options).flag("include_usage", out.usage);
  }
  fields.only("n", 1);
  fields.only("best_of", 1);
  fields.only("echo", false);
  if (chat)
    fields.only("logprobs", false);
  else
    fields.only("logprobs", nullptr);
  fields.only("suffix", "");
  fields.only("presence_penalty", 0);
  fields.only("frequency_penalty", 0);
  fields.only("logit_bias", json::object());
  fields.only("tools", json::array());
  fields.only("functions", json::array());
  fields.only("response_format", json{{"type", "text"}});
  if (fields.error) return *fields.error;
  return out;
}

} // namespace

std::string http_refusal::json() const {
  const char* type = status == 401   ? "authentication_error"
                     : status == 429 ? "rate_limit_error"
                     : status >= 500 ? "server_error"
                                     : "invalid_request_error";
  const auto or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::json() : nlohmann::json(text);
  };
  return clean_json_text(nlohmann::json{{"error",
                                         {{"message", message},
                                          {"type", type},
                                          {"param", or_null(param)},
                                          {"code", or_null(code)}}}});
}

http_answer read_order(const http_order& from, const http_rules& rules) {
  if (!from.host || !is_own_name(*from.host, rules.machine, rules.own_host))
    return http_refusal{403, "this server does not answer to that name"};
  const bool reads = from.method == "GET" || from.method == "HEAD";
  const auto only = [](const char* method) {
    return http_refusal{405, fmt::format("only {} is for this path", method)};
  };
  if (from.path == "/") return reads ? http_answer(page_order{}) : http_answer(only("GET"));
  const bool chat = from.path == "/v1/chat/completions";
  const auto one = "/v1/models/" + rules.model;
  const bool is_models = from.path == "/v1/models" || from.path == one;
  if (!chat && !is_models && from.path != "/v1/completions")
    return http_refusal{404, "there is no such path: try /v1/models, /v1/completions or "
                             "/v1/chat/completions"};
  if (!has_access(from, rules))
    return http_refusal{401,
                        "give the server's token in the header 'Authorization: Bearer TOKEN'",
                        {},
                        "invalid_api_key"};
  if (is_models)
    return reads ? http_answer(models_order{from.path == one}) : http_answer(only("GET"));
  if (from.method != "POST") return only("POST");
  if (!is_json_type(from))
    return http_refusal{415, "a request has the header 'Content-Type: application/json'"};
  return read_completion(from.body, chat, rules);
}

} // namespace shoal::scenarios
