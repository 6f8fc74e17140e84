// Activations [rows, width] on the wire. Each row, the activations of one token, is encoded by
// itself. So a token has the same bytes in a step of its own and in a long one.
// codec::none keeps all bits. The others lose some, as kernels/compress/codec.hpp bounds it; then
// the text depends on the number of hops.
// To predict times, activations of a model of sizes alone (kernels/learn/sized_block.hpp) travel as
// a size: that of rows of `sized` values.
// Source: Borzunov et al., arXiv:2209.01188, section 3.1 (8 bits, blockwise).
#pragma once

#include "kernels/base/payload.hpp"
#include "kernels/base/result.hpp"
#include "kernels/compress/codec.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace shoal::actors {

/// The floats of a payload that an actor of this host has made. Empty if it has no whole floats.
std::vector<float> floats_of(const payload& from);

/// The codec of a number in a message. Empty for numbers and codecs that no activations have.
std::optional<kernels::codec> activation_codec(std::uint8_t number);

/// With `sized` the result is the size of rows of so many values, without the values. Requires:
/// values.size() is a multiple of width. Errors: a value that is not finite.
result<payload> pack_activations(kernels::codec codec, std::vector<float> values, std::size_t width,
                                 std::size_t sized = 0);

/// With `sized` the values are zeros. Errors: another size than rows * width values have, or than
/// rows * sized values have, or a value that is not finite.
result<std::vector<float>> unpack_activations(kernels::codec codec, const payload& from,
                                              std::size_t rows, std::size_t width,
                                              std::size_t sized = 0);

} // namespace shoal::actors
