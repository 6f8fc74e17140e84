// Requests to the server of texts, and tokens that become text for readers.
#include "scenarios/inference/completions_request.hpp"
#include "scenarios/inference/text_stream.hpp"
#include "tests/fuzz/targets.hpp"

#include <algorithm>

namespace shoal::fuzz {

namespace {

/// Tokens are bytes.
class one_byte_codec final : public learn::text_codec {
public:
  std::int64_t vocabulary() const override { return 256; }
  std::vector<learn::token_id> encode(std::string_view text) const override {
    std::vector<learn::token_id> out;
    for (const char c : text) out.push_back(static_cast<unsigned char>(c));
    return out;
  }
  std::string decode(std::span<const learn::token_id> tokens) const override {
    std::string out;
    for (const auto token : tokens) out += static_cast<char>(token);
    return out;
  }
};

void check_pieces(std::string_view bytes, const std::vector<std::string>& stops) {
  using namespace scenarios;
  const one_byte_codec codec;
  text_stream stream(codec, codec.encode("p"), stops);
  std::string all;
  for (const auto token : codec.encode(bytes)) {
    const auto piece = stream.push(token);
    must(as_utf8(piece) == piece, "a piece is UTF-8");
    all += piece;
  }
  all += stream.end();
  auto first = bytes.size();
  // The stop that is complete first ends the text. Among several, the one that begins first.
  auto complete = std::string_view::npos;
  for (const auto& stop : stops)
    if (const auto at = bytes.find(stop); at != std::string_view::npos)
      complete = std::min(complete, at + stop.size());
  if (complete != std::string_view::npos)
    for (const auto& stop : stops) first = std::min(first, bytes.substr(0, complete).find(stop));
  must(stream.stopped() == (complete != std::string_view::npos), "a stop ends the text");
  must(all == as_utf8(bytes.substr(0, first)), "no byte is lost or repeated");
  for (const char c : for_terminal(all))
    must(static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t', "no control characters");
}

} // namespace

void completions(bytes input) {
  using namespace scenarios;
  front from(input);
  const auto how = from.byte();
  const auto header = [&](unsigned bit) -> std::optional<std::string_view> {
    if ((how & bit) == 0) return std::nullopt;
    return text_of(from.take(from.byte() % 40));
  };
  if (how % 8 == 7) {
    std::vector<std::string> stops;
    for (auto count = from.byte() % 3; count > 0; --count)
      if (auto stop = std::string(text_of(from.take(1 + from.byte() % 4))); !stop.empty())
        stops.push_back(std::move(stop));
    return check_pieces(text_of(from.rest()), stops);
  }
  const http_rules rules{"127.0.0.1", "", (how & 8) != 0 ? "sixteen-letters-" : "", "m"};
  const char* paths[] = {"/v1/completions", "/v1/chat/completions", "/v1/models", "/"};
  http_order order;
  order.method = (how & 16) != 0 ? "GET" : "POST";
  order.path = paths[how % 4];
  order.host = (how & 32) != 0 ? header(32) : std::optional<std::string_view>("localhost");
  order.authorization = header(64);
  order.content_type =
      (how & 128) != 0 ? header(128) : std::optional<std::string_view>("application/json");
  order.body = text_of(from.rest());
  const auto out = read_order(order, rules);
  if (const auto* why = std::get_if<http_refusal>(&out)) {
    must(why->status >= 400 && why->status < 500 && !why->message.empty(),
         "a refusal has a reason");
    must(why->json().starts_with("{\"error\":{"), "and the form of the protocol");
    return;
  }
  must(rules.token.empty() || order.path == "/" ||
           order.authorization.value_or("").ends_with(rules.token),
       "nothing without the token");
  const auto* text = std::get_if<completion_order>(&out);
  if (text == nullptr) return must(order.method == "GET", "only a text is posted");
  must(learn::validate(text->sampling).ok(), "the sampling is sound");
  must(!text->prompt.empty() && text->tokens.value_or(1) > 0, "there is something to write");
  must(text->stops.size() <= most_stops, "the stops are few");
  for (const auto& stop : text->stops)
    must(!stop.empty() && stop.size() <= most_stop_bytes, "and short");
}

} // namespace shoal::fuzz
