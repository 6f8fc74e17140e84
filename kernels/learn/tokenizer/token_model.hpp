// The part of a tokenizer that turns pieces of a text into tokens: an interface, and the tokens.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/tokenizer/split.hpp"
#include "kernels/learn/tokens.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace shoal::learn {

/// The texts of tokens 0 to n - 1, and their numbers. The last number of equal texts counts.
class token_list {
public:
  token_list() = default;
  explicit token_list(std::vector<std::string> texts);
  token_list(token_list&&) = default;
  token_list& operator=(token_list&&) = default;

  std::size_t size() const noexcept { return texts_.size(); }
  const std::string& text(token_id id) const { return texts_[static_cast<std::size_t>(id)]; }
  const std::vector<std::string>& texts() const noexcept { return texts_; }
  std::optional<token_id> find(std::string_view text) const;
  /// The tokens '<0x00>' to '<0xFF>', with which unknown characters are spelled; empty if one is
  /// missing.
  std::vector<token_id> byte_tokens() const;

private:
  std::vector<std::string> texts_;
  std::unordered_map<std::string_view, token_id> ids_; ///< views of texts_
};

class token_model {
public:
  virtual ~token_model() = default;
  virtual const token_list& tokens() const = 0;
  /// Appends the tokens of all pieces. Thread safety: several threads may call it.
  virtual void encode(const split_text& text, std::vector<token_id>& to) const = 0;
};

} // namespace shoal::learn
