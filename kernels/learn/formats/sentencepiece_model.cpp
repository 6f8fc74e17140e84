#include "kernels/learn/formats/sentencepiece_model.hpp"

#include "kernels/base/check.hpp"
#include "kernels/learn/formats/whole_file.hpp"

#include <sentencepiece_processor.h>

#include <cstdint>

namespace shoal::learn {

namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 28;

} // namespace

struct sentencepiece_model::state {
  sentencepiece::SentencePieceProcessor processor;
};

sentencepiece_model::sentencepiece_model(std::unique_ptr<state> state) : state_(std::move(state)) {}
sentencepiece_model::sentencepiece_model(sentencepiece_model&&) noexcept = default;
sentencepiece_model::~sentencepiece_model() = default;

result<sentencepiece_model> sentencepiece_model::load(const std::filesystem::path& path) {
  const auto bytes = read_whole_file(path, most_bytes, "tokenizer");
  if (!bytes) return failure{bytes.error()};
  return from_bytes(*bytes, path.string());
}

result<sentencepiece_model> sentencepiece_model::from_bytes(std::string_view bytes,
                                                            const std::string& name) {
  auto read = std::make_unique<state>();
  const auto status =
      bytes.empty() ? sentencepiece::util::Status(sentencepiece::util::StatusCode::kInternal, "")
                    : read->processor.LoadFromSerializedProto({bytes.data(), bytes.size()});
  if (!status.ok() || read->processor.GetPieceSize() <= 0)
    return failure{"tokenizer: '" + name +
                   "' is no model of SentencePiece; give a tokenizer.json, a .model of "
                   "SentencePiece, or a folder with one"};
  return sentencepiece_model(std::move(read));
}

std::int64_t sentencepiece_model::vocabulary() const {
  return state_->processor.GetPieceSize();
}

std::vector<token_id> sentencepiece_model::encode(std::string_view text) const {
  std::vector<int> ids;
  const auto status = state_->processor.Encode({text.data(), text.size()}, &ids);
  SHOAL_CHECK(status.ok(), "a loaded model of SentencePiece encodes all texts");
  return {ids.begin(), ids.end()};
}

std::string sentencepiece_model::decode(std::span<const token_id> tokens) const {
  std::vector<int> ids;
  for (const auto id : tokens) {
    SHOAL_CHECK(id >= 0 && id < vocabulary(), "a token is in the vocabulary");
    ids.push_back(static_cast<int>(id));
  }
  std::string out;
  const auto status = state_->processor.Decode(ids, &out);
  SHOAL_CHECK(status.ok(), "a loaded model of SentencePiece decodes all of its tokens");
  return out;
}

std::string sentencepiece_model::token(token_id id) const {
  SHOAL_CHECK(id >= 0 && id < vocabulary(), "a token is in the vocabulary");
  return state_->processor.IdToPiece(static_cast<int>(id));
}
double sentencepiece_model::score(token_id id) const {
  SHOAL_CHECK(id >= 0 && id < vocabulary(), "a token is in the vocabulary");
  return state_->processor.GetScore(static_cast<int>(id));
}
token_id sentencepiece_model::unknown() const {
  return state_->processor.unk_id();
}

} // namespace shoal::learn
