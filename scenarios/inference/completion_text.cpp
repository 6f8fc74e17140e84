#include "scenarios/inference/completion_text.hpp"

#include "kernels/base/json_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace shoal::scenarios {

namespace {

using ordered_json = nlohmann::ordered_json;

std::string text_of(const ordered_json& what) {
  return clean_json_text(what);
}

ordered_json usage_of(std::size_t prompt, std::size_t completion) {
  return {{"prompt_tokens", prompt},
          {"completion_tokens", completion},
          {"total_tokens", prompt + completion}};
}

std::uint32_t limit_of(const completion_order& order, std::size_t prompt, std::size_t context) {
  return order.tokens.value_or(static_cast<std::uint32_t>(context - std::min(prompt, context)));
}

} // namespace

completion_text::completion_text(completion_order order, const learn::served_model& model,
                                 std::vector<learn::token_id> prompt, std::string id,
                                 std::int64_t created)
    : order_(std::move(order)), id_(std::move(id)), model_(model.name), created_(created),
      prompt_tokens_(prompt.size()),
      most_(limit_of(order_, prompt.size(), static_cast<std::size_t>(model.model->context()))),
      text_(*model.codec, std::move(prompt), order_.stops) {}

const char* completion_text::reason() const {
  return !stopped() && tokens_ >= most_ ? "length" : "stop";
}

std::string completion_text::event(const std::string& piece, const char* finished) {
  ordered_json choice{{"index", 0}};
  if (order_.chat) {
    choice["delta"] = ordered_json::object();
    if (!std::exchange(begun_, true)) choice["delta"]["role"] = "assistant";
    if (finished == nullptr) choice["delta"]["content"] = piece;
  } else {
    choice["text"] = piece;
  }
  choice["logprobs"] = nullptr;
  choice["finish_reason"] = finished == nullptr ? ordered_json() : ordered_json(finished);
  ordered_json out{{"id", id_},
                   {"object", order_.chat ? "chat.completion.chunk" : "text_completion"},
                   {"created", created_},
                   {"model", model_},
                   {"choices", ordered_json::array({std::move(choice)})}};
  if (order_.usage) out["usage"] = nullptr;
  return "data: " + text_of(out) + "\n\n";
}

std::string completion_text::push(learn::token_id next) {
  ++tokens_;
  const auto piece = text_.push(next);
  if (!order_.stream) {
    all_ += piece;
    return {};
  }
  return piece.empty() ? std::string{} : event(piece, nullptr);
}

std::string completion_text::end() {
  const auto rest = text_.end();
  if (!order_.stream) {
    all_ += rest;
    return {};
  }
  auto out = rest.empty() ? std::string{} : event(rest, nullptr);
  out += event({}, reason());
  if (order_.usage)
    out += "data: " +
           text_of({{"id", id_},
                    {"object", order_.chat ? "chat.completion.chunk" : "text_completion"},
                    {"created", created_},
                    {"model", model_},
                    {"choices", ordered_json::array()},
                    {"usage", usage_of(prompt_tokens_, tokens_)}}) +
           "\n\n";
  return out + "data: [DONE]\n\n";
}

std::string completion_text::whole() const {
  ordered_json choice{{"index", 0}};
  if (order_.chat)
    choice["message"] = {{"role", "assistant"}, {"content", all_}};
  else
    choice["text"] = all_;
  choice["logprobs"] = nullptr;
  choice["finish_reason"] = reason();
  return text_of({{"id", id_},
                  {"object", order_.chat ? "chat.completion" : "text_completion"},
                  {"created", created_},
                  {"model", model_},
                  {"choices", ordered_json::array({std::move(choice)})},
                  {"usage", usage_of(prompt_tokens_, tokens_)}});
}

result<std::uint32_t> room_for(const completion_order& order, std::size_t prompt_tokens,
                               std::size_t context) {
  if (prompt_tokens >= context)
    return failure{fmt::format("the prompt has {} tokens, and the model's context has room for {}",
                               prompt_tokens, context - 1)};
  const auto room = context - prompt_tokens;
  if (order.tokens && *order.tokens > room)
    return failure{fmt::format("{} tokens after a prompt of {} are more than the model's context "
                               "of {}",
                               *order.tokens, prompt_tokens, context)};
  return limit_of(order, prompt_tokens, context);
}

std::string models_json(const std::string& model, bool one) {
  const ordered_json each{
      {"id", model}, {"object", "model"}, {"created", 0}, {"owned_by", "shoal"}};
  return text_of(one ? each
                     : ordered_json{{"object", "list"}, {"data", ordered_json::array({each})}});
}

std::string news_event(const inference_news& news) {
  ordered_json out{{"text", news.text}};
  if (news.what == inference_news::kind::route) {
    out["hops"] = ordered_json::array();
    for (const auto& hop : news.hops)
      out["hops"].push_back(
          {{"server", hop.server}, {"first", hop.layers.first}, {"last", hop.layers.last}});
  }
  return "data: " + text_of({{"shoal", std::move(out)}}) + "\n\n";
}

} // namespace shoal::scenarios
