// The byte transformer in pipeline stages. A sample is `context + 1` bytes: the inputs, and the
// byte after each of them.
#pragma once

#include "actors/pipeline/stage_model.hpp"
#include "kernels/base/result.hpp"
#include "kernels/layout.hpp"
#include "kernels/learn/maxout_layout.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace shoal::scenarios {

/// Errors: another number of bytes than `count` samples have.
result<actors::piece_batch> read_byte_samples(std::span<const std::byte> samples,
                                              std::uint64_t count, std::size_t context);

/// The model in stages whose numbers of layers differ by at most one. Errors: more stages than
/// layers, or none; sizes that make no model; a stage that ends where a model with bottlenecks has
/// none.
result<std::shared_ptr<const actors::stage_model>>
cut_byte_transformer(const kernels::transformer_config& model, std::uint32_t stages,
                     const learn::maxout_config& maxout = {});

} // namespace shoal::scenarios
