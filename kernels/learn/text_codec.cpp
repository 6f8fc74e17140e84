#include "kernels/learn/text_codec.hpp"

#include "kernels/base/check.hpp"

namespace shoal::learn {

namespace {

class bytes_as_tokens final : public text_codec {
public:
  std::int64_t vocabulary() const override { return 256; }

  std::vector<token_id> encode(std::string_view text) const override {
    std::vector<token_id> out;
    out.reserve(text.size());
    for (const char c : text) out.push_back(static_cast<unsigned char>(c));
    return out;
  }

  std::string decode(std::span<const token_id> tokens) const override {
    std::string out;
    out.reserve(tokens.size());
    for (const auto token : tokens) {
      SHOAL_CHECK(token >= 0 && token < vocabulary(), "a token of the byte model is a byte");
      out.push_back(static_cast<char>(token));
    }
    return out;
  }
};

} // namespace

const text_codec& byte_codec() {
  static const bytes_as_tokens codec;
  return codec;
}

std::string printable(std::string_view bytes) {
  std::string text(bytes);
  for (char& c : text)
    if (c != '\n' && c != '\t' && (c < ' ' || c > '~')) c = '?';
  return text;
}

} // namespace shoal::learn
