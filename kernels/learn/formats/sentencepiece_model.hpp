// Reads a model of SentencePiece (`.model`), by the library of its authors. Encoding and decoding
// are the library's.
// Source: Kudo and Richardson, "SentencePiece", arXiv:1808.06226.
// Thread safety: immutable after loading.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/text_codec.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace shoal::learn {

class sentencepiece_model final : public text_codec {
public:
  /// From the bytes of a file, which errors call `name`. Errors: none that the library reads.
  static result<sentencepiece_model> from_bytes(std::string_view bytes, const std::string& name);
  sentencepiece_model(sentencepiece_model&&) noexcept;
  ~sentencepiece_model() override;

  std::int64_t vocabulary() const override;
  std::vector<token_id> encode(std::string_view text) const override;
  std::string decode(std::span<const token_id> tokens) const override;

  /// Requires: 0 <= id < vocabulary().
  std::string token(token_id id) const;
  token_id unknown() const;

private:
  struct state;
  explicit sentencepiece_model(std::unique_ptr<state> state);
  std::unique_ptr<state> state_;
};

} // namespace shoal::learn
