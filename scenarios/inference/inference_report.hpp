// Runs an inference swarm from its options, prints the text as it comes, and sums it up.
#pragma once

#include "actors/inference/route.hpp"
#include "kernels/base/result.hpp"
#include "scenarios/inference/inference_swarm.hpp"
#include "scenarios/programs/inference.hpp"
#include "scenarios/programs/program_run.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shoal::scenarios {

/// The layers in a text like '0:2'; empty if it is none.
std::optional<actors::layer_span> layers_of(std::string_view text);

/// 3 of the name 'server-3'. Nothing for other names.
std::optional<std::size_t> number_of_server(std::string_view name);

/// As layers_of(), or the first layers for a number of them, like '2'.
std::optional<actors::layer_span> some_layers_of(std::string_view text);

/// The swarm of the options, without its model.
result<inference_swarm> swarm_of(const inference_options& what, std::uint64_t seed);

/// Runs the swarm of a model of sizes alone, or one that computes passes. Its figures are times.
result<program_outcome> run_inference_timing(const std::string& name, const inference_options& what,
                                             std::uint64_t seed, const program_hooks& hooks);

/// Runs a swarm whose clients learn prompts. The run has failed if the loss did not fall. It has
/// failed, too, if the model has another loss with these prompts on one machine.
result<program_outcome> run_prompt_tuning(const std::string& name, const inference_options& what,
                                          std::uint64_t seed, const program_hooks& hooks);

/// Runs the swarm. The text of the first client is printed as it comes, with lines that say who
/// computes which layers. The run has failed if a client's text is not the one that the model
/// writes alone, or if a client did not finish. Errors: a model that cannot be read, or those of
/// run_inference_swarm().
result<program_outcome> run_inference(const std::string& name, const inference_options& what,
                                      std::uint64_t seed, const program_hooks& hooks);

} // namespace shoal::scenarios
