// scenarios/inference: requests of the completions protocol, their answers, and text from tokens.
#include "scenarios/inference/completion_text.hpp"
#include "scenarios/inference/completions_request.hpp"
#include "scenarios/inference/text_stream.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace shoal;
using namespace shoal::scenarios;

namespace {

const http_rules open_rules{"127.0.0.1", "", "", "m"};

http_order post(std::string_view path, std::string_view body) {
  return {"POST", path, "localhost:8000", std::nullopt, "application/json; charset=utf-8", body};
}

completion_order order_of(std::string_view path, std::string_view body) {
  const auto out = read_order(post(path, body), open_rules);
  const auto* why = std::get_if<http_refusal>(&out);
  REQUIRE_MESSAGE(why == nullptr, why->message);
  return std::get<completion_order>(out);
}

http_refusal refusal_of(const http_order& from, const http_rules& rules = open_rules) {
  const auto out = read_order(from, rules);
  REQUIRE(std::holds_alternative<http_refusal>(out));
  return std::get<http_refusal>(out);
}

std::vector<std::string> pieces(std::string_view bytes, std::vector<std::string> stops,
                                bool& stopped) {
  const auto& codec = learn::byte_codec();
  text_stream stream(codec, codec.encode("p"), std::move(stops));
  std::vector<std::string> out;
  for (const auto token : codec.encode(bytes)) out.push_back(stream.push(token));
  out.push_back(stream.end());
  stopped = stream.stopped();
  return out;
}

std::string joined(const std::vector<std::string>& all) {
  std::string out;
  for (const auto& each : all) out += each;
  return out;
}

} // namespace

TEST_CASE("completions: a request has the protocol's fields and its defaults") {
  const auto a = order_of("/v1/completions", R"({"prompt":"once"})");
  CHECK(a.prompt == "once");
  CHECK(a.tokens == 16U);
  CHECK(a.sampling.temperature == 1);
  CHECK(!a.stream);
  const auto b = order_of("/v1/chat/completions", R"({"model":"m","messages":[
    {"role":"system","content":"x"},{"role":"user","content":[{"type":"text","text":"y"}]}],
    "max_completion_tokens":7,"temperature":0.5,"top_p":0.25,"seed":9,"stop":"z","stream":true,
    "n":1,"presence_penalty":0,"logit_bias":{},"tools":null,"user":"me"})");
  CHECK(b.chat);
  CHECK(b.prompt == "x\ny");
  CHECK(b.tokens == 7U);
  CHECK(b.sampling.top_p == 0.25);
  CHECK(b.seed == 9U);
  CHECK(b.stops == std::vector<std::string>{"z"});
  CHECK(b.stream);
  CHECK(!order_of("/v1/chat/completions", R"({"messages":[{"content":"a"}]})").tokens);
}

TEST_CASE("completions: a refusal has the protocol's form and names the field") {
  const auto why = refusal_of(post("/v1/completions", R"({"prompt":"a","temperature":3})"));
  CHECK(why == http_refusal{400, "'temperature' has to be from 0 to 2", "temperature", ""});
  const auto shown = nlohmann::json::parse(why.json());
  CHECK(shown["error"]["type"] == "invalid_request_error");
  CHECK(shown["error"]["param"] == "temperature");
  CHECK(shown["error"]["code"].is_null());
  CHECK(refusal_of(post("/v1/completions", R"({"prompt":"a","model":"x"})")).code ==
        "model_not_found");
  // A foreign page can send neither another name nor this type without asking first.
  auto foreign = post("/v1/completions", R"({"prompt":"a"})");
  foreign.host = "evil.example";
  CHECK(refusal_of(foreign).status == 403);
  foreign.host.reset();
  CHECK(refusal_of(foreign).status == 403);
  auto plain = post("/v1/completions", R"({"prompt":"a"})");
  plain.content_type = "text/plain";
  CHECK(refusal_of(plain).status == 415);
}

TEST_CASE("completions: a token opens all but the page") {
  const http_rules rules{"127.0.0.1", "", "sixteen-letters-", "m"};
  http_order asks{"GET", "/v1/models", "localhost", std::nullopt, std::nullopt, ""};
  for (const char* wrong : {"", "Bearer", "Bearer ", "Bearer sixteen-letters", "sixteen-letters-",
                            "Bearer sixteen-letters--"}) {
    asks.authorization = wrong;
    CHECK(refusal_of(asks, rules).status == 401);
  }
  asks.authorization = "bearer sixteen-letters-";
  CHECK(std::holds_alternative<models_order>(read_order(asks, rules)));
  CHECK(std::holds_alternative<page_order>(
      read_order({"GET", "/", "localhost", std::nullopt, std::nullopt, ""}, rules)));
}

TEST_CASE("completions: a prompt without room is refused with the numbers") {
  completion_order order;
  order.tokens = 10;
  CHECK(room_for(order, 5, 15).value() == 10);
  CHECK(room_for(order, 6, 15).error() ==
        "10 tokens after a prompt of 6 are more than the model's context of 15");
  order.tokens.reset();
  CHECK(room_for(order, 6, 15).value() == 9);
  CHECK(room_for(order, 15, 15).error() ==
        "the prompt has 15 tokens, and the model's context has room for 14");
}

TEST_CASE("completions: pieces end between characters and before a stop") {
  bool stopped = false;
  CHECK(pieces("a\xE2\x82\xAC", {}, stopped) ==
        std::vector<std::string>{"a", "", "", "\xE2\x82\xAC", ""});
  CHECK(pieces("a\xE2", {}, stopped) == std::vector<std::string>{"a", "", "\xEF\xBF\xBD"});
  CHECK(pieces("\xFFz", {}, stopped) == std::vector<std::string>{"\xEF\xBF\xBD", "z", ""});
  CHECK(joined(pieces("one two three", {"two"}, stopped)) == "one ");
  CHECK(stopped);
  CHECK(pieces("abab", {"abc"}, stopped) == std::vector<std::string>{"", "", "ab", "", "ab"});
  CHECK(!stopped);
  CHECK(joined(pieces("aab", {"ab"}, stopped)) == "a");
  CHECK(stopped);
  CHECK(for_terminal("a\x1B[31mb\tc\n\xC2\x9B") == "a[31mb\tc\n");
}
