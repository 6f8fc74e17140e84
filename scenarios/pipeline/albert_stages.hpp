// ALBERT in pipeline stages. Its layers share their tensors, so all hops through layers are on one
// stage, and the embedding and the heads are on another one. A sample is as
// kernels/learn/albert_sample.hpp has it.
#pragma once

#include "actors/pipeline/stage_model.hpp"
#include "kernels/base/result.hpp"
#include "kernels/learn/albert_layout.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace shoal::scenarios {

/// Every sample is padded to `config.positions` tokens, so that all micro-batches of a run have
/// rows of one length. Errors: bytes that are no `count` samples of the model.
result<actors::piece_batch> read_albert_samples(std::span<const std::byte> samples,
                                                std::uint64_t count,
                                                const learn::albert_config& config);

/// The ends on stage 0, and the layers on stage 1. A micro-batch makes `parts` hops through the
/// layers, whose numbers of layers differ by at most one. Errors: more parts than layers, or none;
/// sizes that make no model; libtorch cannot be loaded.
result<std::shared_ptr<const actors::stage_model>> cut_albert(const learn::albert_config& config,
                                                              bool checkpoint, std::uint32_t parts);

} // namespace shoal::scenarios
