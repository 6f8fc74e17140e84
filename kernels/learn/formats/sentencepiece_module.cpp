// All of Shoal's code that calls SentencePiece, a module that is loaded with the first `.model`.
#include "kernels/learn/formats/sentencepiece_calls.hpp"

#include <sentencepiece_processor.h>

namespace shoal::learn {

namespace {

class processor_calls final : public sentencepiece_calls {
public:
  bool load(std::string_view bytes) override {
    return processor_.LoadFromSerializedProto({bytes.data(), bytes.size()}).ok();
  }
  int pieces() const override { return processor_.GetPieceSize(); }
  bool encode(std::string_view text, std::vector<int>& out) const override {
    return processor_.Encode({text.data(), text.size()}, &out).ok();
  }
  bool decode(const std::vector<int>& ids, std::string& out) const override {
    return processor_.Decode(ids, &out).ok();
  }
  std::string piece(int id) const override { return processor_.IdToPiece(id); }
  int unknown() const override { return processor_.unk_id(); }

private:
  sentencepiece::SentencePieceProcessor processor_;
};

} // namespace

} // namespace shoal::learn

shoal::learn::sentencepiece_calls* shoal_make_sentencepiece() {
  return new shoal::learn::processor_calls;
}
