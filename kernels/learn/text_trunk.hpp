// The ends of a network of experts that predicts the next token of a text. The entrance embeds the
// tokens and runs the layers of a transformer, which have the attention. The exit is the final norm
// and the output matrix, which is the embedding. The layers of experts stand between them.
//   tokens -> embedding -> layers of the trunk -> experts -> norm, output matrix -> loss
// Source of the layers: kernels/learn/transformer.hpp, in pieces by transformer_blocks.hpp.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/layout.hpp"
#include "kernels/learn/mixture_network.hpp"

#include <cstdint>
#include <memory>

namespace shoal::learn {

/// A row that a gate routes.
enum class text_row : std::uint8_t {
  token,    ///< [dim]. An expert sees the token and what attention brought from earlier ones.
  sequence, ///< [context, dim], for experts with attention of their own. The gate sees all tokens,
            ///< so the choice of experts tells a prediction about later tokens.
};

/// `config.layers` are the layers of the trunk; 0: none. A sample is context + 1 tokens
/// (tokens.hpp), and its loss is the mean over the predictions, in nats.
/// Errors: sizes that validate() refuses; libtorch cannot be loaded.
result<std::shared_ptr<const network_ends>>
make_text_trunk(const kernels::transformer_config& config, text_row row);

} // namespace shoal::learn
