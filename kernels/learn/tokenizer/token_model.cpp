#include "kernels/learn/tokenizer/token_model.hpp"

#include <array>

namespace shoal::learn {

token_list::token_list(std::vector<std::string> texts) : texts_(std::move(texts)) {
  ids_.reserve(texts_.size());
  for (std::size_t i = 0; i < texts_.size(); ++i) ids_[texts_[i]] = static_cast<token_id>(i);
}

std::optional<token_id> token_list::find(std::string_view text) const {
  const auto found = ids_.find(text);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<token_id> token_list::byte_tokens() const {
  static constexpr char digits[] = "0123456789ABCDEF";
  std::vector<token_id> out;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const char text[] = {'<', '0', 'x', digits[byte / 16], digits[byte % 16], '>'};
    const auto id = find(std::string_view(text, sizeof(text)));
    if (!id) return {};
    out.push_back(*id);
  }
  return out;
}

} // namespace shoal::learn
