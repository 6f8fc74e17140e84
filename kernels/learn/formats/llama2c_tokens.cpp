#include "kernels/learn/formats/llama2c_tokens.hpp"

#include "kernels/base/check.hpp"
#include "kernels/learn/formats/whole_file.hpp"

#include <cstring>
#include <utility>

namespace shoal::learn {

namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{64} << 20;
constexpr token_id first_byte = 3;

/// The byte that a piece such as <0x0A> stands for; -1 for other pieces.
int byte_of(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece.back() != '>') return -1;
  int out = 0;
  for (const char c : piece.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (digit < 0) return -1;
    out = 16 * out + digit;
  }
  return out;
}

/// The bytes of the code point at the beginning of `text`, as far as they are there.
std::size_t code_point_length(std::string_view text) {
  std::size_t out = 1;
  while (out < 4 && out < text.size() && (static_cast<unsigned char>(text[out]) & 0xC0U) == 0x80U)
    ++out;
  return out;
}

} // namespace

result<llama2c_tokens> llama2c_tokens::load(const std::filesystem::path& path,
                                            std::int64_t vocabulary) {
  const auto bytes = read_whole_file(path, most_bytes, "tokenizer");
  if (!bytes) return failure{bytes.error()};
  return read(*bytes, vocabulary, path.string());
}

result<llama2c_tokens> llama2c_tokens::read(std::string_view bytes, std::int64_t vocabulary,
                                            const std::string& name) {
  const auto refused = [&](const std::string& why) {
    return failure{"tokenizer: '" + name + "' " + why};
  };
  llama2c_tokens out;
  const auto take = [&](auto& into) {
    if (bytes.size() < sizeof into) return false;
    std::memcpy(&into, bytes.data(), sizeof into);
    bytes.remove_prefix(sizeof into);
    return true;
  };
  std::int32_t longest = 0;
  if (!take(longest)) return refused("is too short for a tokenizer of llama2.c");
  while (!bytes.empty()) {
    float score = 0;
    std::int32_t length = 0;
    if (!take(score) || !take(length) || length < 0 ||
        static_cast<std::size_t>(length) > bytes.size())
      return refused("ends inside token " + std::to_string(out.pieces_.size()));
    out.pieces_.emplace_back(bytes.substr(0, static_cast<std::size_t>(length)));
    out.scores_.push_back(score);
    bytes.remove_prefix(static_cast<std::size_t>(length));
    out.ids_.emplace(out.pieces_.back(), static_cast<token_id>(out.pieces_.size() - 1));
  }
  if (out.vocabulary() != vocabulary)
    return refused("has " + std::to_string(out.vocabulary()) + " tokens; the model has " +
                   std::to_string(vocabulary));
  if (vocabulary < first_byte + 256) return refused("lacks the tokens of the 256 bytes");
  return out;
}

std::vector<token_id> llama2c_tokens::encode(std::string_view text) const {
  std::vector<token_id> out{begin_of_text};
  if (text.empty()) return out;
  if (const auto space = ids_.find(" "); space != ids_.end()) out.push_back(space->second);
  while (!text.empty()) {
    const auto point = text.substr(0, code_point_length(text));
    if (const auto found = ids_.find(point); found != ids_.end())
      out.push_back(found->second);
    else
      for (const char c : point) out.push_back(first_byte + static_cast<unsigned char>(c));
    text.remove_prefix(point.size());
  }
  for (;;) {
    std::size_t best = 0;
    token_id merged = -1;
    for (std::size_t i = 0; i + 1 < out.size(); ++i) {
      const auto found = ids_.find(pieces_[static_cast<std::size_t>(out[i])] +
                                   pieces_[static_cast<std::size_t>(out[i + 1])]);
      if (found == ids_.end()) continue;
      if (merged >= 0 && scores_[static_cast<std::size_t>(found->second)] <=
                             scores_[static_cast<std::size_t>(merged)])
        continue;
      best = i;
      merged = found->second;
    }
    if (merged < 0) return out;
    out[best] = merged;
    out.erase(out.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

std::string llama2c_tokens::piece(token_id previous, token_id token) const {
  SHOAL_CHECK(token >= 0 && token < vocabulary(), "each token is in the vocabulary");
  if (token < first_byte) return {};
  const auto& bytes = pieces_[static_cast<std::size_t>(token)];
  if (const int byte = byte_of(bytes); byte >= 0)
    return std::string(1, static_cast<char>(static_cast<unsigned char>(byte)));
  if (previous == begin_of_text && bytes.starts_with(' ')) return bytes.substr(1);
  return bytes;
}

std::string llama2c_tokens::decode(std::span<const token_id> tokens) const {
  std::string out;
  token_id previous = -1;
  for (const auto token : tokens) out += piece(std::exchange(previous, token), token);
  return out;
}

} // namespace shoal::learn
