// The fuzz targets. A target is a function that gets any bytes. It has to return soon, without a
// crash. The values that it reads have to keep the promises of their headers, or must() ends the
// program. `fuzz_NAME` (preset `fuzz`) gives the target to libFuzzer, and `test_fuzz` plays the
// files of tests/fuzz/corpus/NAME through it in every build.
#pragma once

#include "kernels/base/check.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::fuzz {

// clang-format off
#define SHOAL_FUZZ_TARGETS(X)                                                                      \
  X(certificates) X(checkpoint) X(codecs) X(completions) X(dht_records) X(frames) X(http)          \
  X(liars) X(llama2c) X(messages) X(model_config) X(node_report) X(pictures) X(safetensors)         \
  X(scenario) X(strangers) X(tokenizer_json) X(traces) X(yaml)
// clang-format on

using bytes = std::span<const std::byte>;

// (clang 14 has no std::source_location.)
inline void must(bool promised, const char* what, const char* file = __builtin_FILE(),
                 int line = __builtin_LINE()) {
  if (!promised) check_failed(file, line, "a promise is kept", what);
}

#define SHOAL_DECLARE_TARGET(name) void name(bytes input);
SHOAL_FUZZ_TARGETS(SHOAL_DECLARE_TARGET)
#undef SHOAL_DECLARE_TARGET

inline std::string_view text_of(bytes from) {
  return {reinterpret_cast<const char*>(from.data()), from.size()};
}

/// Takes numbers off the front of an input; zeros when there is nothing left.
class front {
public:
  explicit front(bytes from) : left_(from) {}
  std::uint8_t byte() {
    const auto out = left_.empty() ? std::byte{0} : left_.front();
    if (!left_.empty()) left_ = left_.subspan(1);
    return std::to_integer<std::uint8_t>(out);
  }
  std::uint16_t two_bytes() {
    const unsigned low = byte(), high = byte();
    return static_cast<std::uint16_t>(low | high << 8);
  }
  bytes take(std::size_t most) {
    const auto out = left_.first(most < left_.size() ? most : left_.size());
    left_ = left_.subspan(out.size());
    return out;
  }
  bytes rest() const { return left_; }
  bool empty() const { return left_.empty(); }

private:
  bytes left_;
};

} // namespace shoal::fuzz
