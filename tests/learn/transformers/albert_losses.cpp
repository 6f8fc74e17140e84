// Samples and their losses by Shoal's ALBERT, for a program that computes them with another
// library.
//   albert_losses CHECKPOINT COUNT SEED
// Prints a JSON object for each sample: tokens, first (the tokens of the first segment), labels
// (null: none), order, loss. The samples are random: neither their tokens nor their labels mean
// anything.
#include "kernels/learn/albert.hpp"
#include "kernels/learn/albert_description.hpp"
#include "kernels/learn/checkpoint.hpp"

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <iostream>
#include <random>

using namespace shoal;
using namespace shoal::learn;

namespace {

albert_sample random_sample(const albert_config& config, std::mt19937& random) {
  const auto below = [&](std::int64_t limit) {
    return static_cast<token_id>(std::uniform_int_distribution<std::int64_t>(0, limit - 1)(random));
  };
  albert_sample out;
  const auto length = 8 + static_cast<std::size_t>(below(config.positions - 7));
  out.first = 3 + static_cast<std::size_t>(below(static_cast<std::int64_t>(length) - 5));
  out.order = below(2);
  for (std::size_t i = 0; i < length; ++i) {
    out.tokens.push_back(1 + below(config.vocabulary - 1));
    out.labels.push_back(below(7) == 0 || i == 1 ? below(config.vocabulary)
                                                 : albert_sample::no_label);
  }
  return out;
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: albert_losses CHECKPOINT COUNT SEED\n";
    return 2;
  }
  const auto saved = load_checkpoint(argv[1]);
  if (!saved) {
    std::cerr << argv[1] << ": " << saved.error() << "\n";
    return 1;
  }
  const auto config = albert_of(*saved);
  if (!config) {
    std::cerr << argv[1] << ": " << config.error() << "\n";
    return 1;
  }
  const albert model(*config);
  std::mt19937 random(static_cast<std::uint32_t>(std::atoi(argv[3])));
  for (int left = std::atoi(argv[2]); left > 0; --left) {
    const auto sample = random_sample(*config, random);
    std::vector<std::byte> bytes(model.sample_bytes());
    model.format().write(sample, bytes);
    nlohmann::json said{
        {"tokens", sample.tokens}, {"first", sample.first}, {"order", sample.order}};
    for (const auto label : sample.labels)
      said["labels"].push_back(label == albert_sample::no_label ? nlohmann::json()
                                                                : nlohmann::json(label));
    said["loss"] = model.mean_loss(saved->parameters, bytes, 1);
    std::cout << said << "\n";
  }
}
