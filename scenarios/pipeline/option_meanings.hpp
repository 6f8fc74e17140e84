// The reference's text about options that the program `pipeline` and the method `pipeline` have in
// common.
#pragma once

namespace shoal::scenarios::pipeline_meaning {

inline constexpr const char* stages =
    "the pieces of the model, each with as many layers as the others, or one more. The first stage "
    "holds the embedding and the head, too";
inline constexpr const char* stages_of_workload =
    "the pieces of the model, each with as many layers as the others, or one more. The first stage "
    "holds the embedding and the head, too. The layers of `albert` share their tensors: they are "
    "one stage, through which a micro-batch makes so many hops";
inline constexpr const char* in_flight = "micro-batches that a trainer has under way";
inline constexpr const char* activations =
    "codec of activations and of their gradients on the wire. All but `none` round them";
inline constexpr const char* activation_codecs = "none, float16, bfloat16, blockwise8";
inline constexpr const char* rebalance_every =
    "how often a host may move from the stage with the least load to the one with the most; 0: "
    "never";

} // namespace shoal::scenarios::pipeline_meaning
