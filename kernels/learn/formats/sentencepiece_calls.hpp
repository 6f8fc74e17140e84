// The functions of SentencePiece that Shoal calls. The library has a protobuf of its own, whose
// symbols would take the place of those that libtorch needs. So a module that is loaded privately
// calls the library (sentencepiece_module.cpp).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::learn {

class sentencepiece_calls {
public:
  virtual ~sentencepiece_calls() = default;
  /// Once, before the other functions; they need true.
  virtual bool load(std::string_view bytes) = 0;
  virtual int pieces() const = 0;
  virtual bool encode(std::string_view text, std::vector<int>& out) const = 0;
  virtual bool decode(const std::vector<int>& ids, std::string& out) const = 0;
  virtual std::string piece(int id) const = 0;
  virtual int unknown() const = 0;
};

} // namespace shoal::learn

/// The module's only function. The caller owns what it returns.
extern "C" shoal::learn::sentencepiece_calls* shoal_make_sentencepiece();
