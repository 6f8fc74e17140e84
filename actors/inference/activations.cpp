#include "actors/inference/activations.hpp"

#include "kernels/base/check.hpp"
#include "kernels/reduce_weighted_mean.hpp"

#include <cstring>
#include <utility>

namespace shoal::actors {

namespace {

std::size_t row_bytes(kernels::codec codec, std::size_t width) {
  return codec == kernels::codec::none ? width * sizeof(float)
                                       : kernels::encoded_bytes(codec, width);
}

} // namespace

std::vector<float> floats_of(const payload& from) {
  if (from.is_size_only() || from.size() % sizeof(float) != 0) return {};
  std::vector<float> out(from.size() / sizeof(float));
  if (!out.empty()) std::memcpy(out.data(), from.bytes().data(), from.size());
  return out;
}

std::optional<kernels::codec> activation_codec(std::uint8_t number) {
  for (const auto each : {kernels::codec::none, kernels::codec::float16, kernels::codec::bfloat16,
                          kernels::codec::blockwise8})
    if (static_cast<std::uint8_t>(each) == number) return each;
  return std::nullopt;
}

result<payload> pack_activations(kernels::codec codec, std::vector<float> values, std::size_t width,
                                 std::size_t sized) {
  SHOAL_CHECK(width > 0 && values.size() % width == 0, "activations are whole rows");
  if (!kernels::all_finite(values)) return failure{"activations: a value is not finite"};
  if (sized != 0) return payload::size_only(values.size() / width * row_bytes(codec, sized));
  if (codec == kernels::codec::none) return payload{std::move(values)};
  const auto row = row_bytes(codec, width);
  std::vector<std::byte> out(values.size() / width * row);
  for (std::size_t r = 0; r * width < values.size(); ++r)
    if (auto done = kernels::encode_into(codec, std::span(values).subspan(r * width, width),
                                         std::span(out).subspan(r * row, row));
        !done)
      return failure{done.error()};
  return payload{std::move(out)};
}

result<std::vector<float>> unpack_activations(kernels::codec codec, const payload& from,
                                              std::size_t rows, std::size_t width,
                                              std::size_t sized) {
  if (sized != 0) {
    if (from.size() != rows * row_bytes(codec, sized) || (!from.empty() && !from.is_size_only()))
      return failure{"activations: they have another size"};
    return std::vector<float>(rows * width);
  }
  const auto row = row_bytes(codec, width);
  if (from.is_size_only() || from.size() != rows * row)
    return failure{"activations: they have another size"};
  std::vector<float> out(rows * width);
  if (codec == kernels::codec::none) {
    if (!out.empty()) std::memcpy(out.data(), from.bytes().data(), from.size());
  } else {
    for (std::size_t r = 0; r < rows; ++r)
      if (auto done = kernels::decode(codec, from.bytes().subspan(r * row, row),
                                      std::span(out).subspan(r * width, width));
          !done)
        return failure{done.error()};
  }
  if (!kernels::all_finite(out)) return failure{"activations: a value is not finite"};
  return out;
}

} // namespace shoal::actors
