// The pretrained model stories260K and its published text, for the tests of inference.
#pragma once

#include "kernels/base/digest.hpp"
#include "kernels/learn/decoder.hpp"
#include "kernels/learn/llama.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace shoal::test {

struct stories {
  explicit stories(const std::filesystem::path& file) {
    const auto read = learn::load_llama2c(file);
    REQUIRE_MESSAGE(read.ok(), read.error());
    const auto config = learn::llama_config(read->shape);
    REQUIRE_MESSAGE(config.ok(), config.error());
    model = std::make_unique<learn::decoder>(*config);
    auto flat = learn::llama_parameters(*config, read->tensors);
    REQUIRE_MESSAGE(flat.ok(), flat.error());
    parameters = std::move(*flat);
  }

  std::unique_ptr<const learn::served_block> block(std::int64_t first, std::int64_t last) const {
    const auto tensors = model->block_tensors({first, last});
    return model->block({first, last}, learn::gather(model->layout(), parameters, *tensors).value())
        .value();
  }
  std::unique_ptr<const learn::served_ends> ends() const {
    return model
        ->ends(learn::gather(model->layout(), parameters, model->embedding_tensors()).value(),
               learn::gather(model->layout(), parameters, model->head_tensors()).value())
        .value();
  }

  std::unique_ptr<learn::decoder> model;
  std::vector<float> parameters;
};

inline nlohmann::json published(const std::filesystem::path& file) {
  std::ifstream in(file);
  return nlohmann::json::parse(in);
}

/// All cuts of `layers` layers into blocks: 2^(layers - 1).
inline std::vector<std::vector<learn::layer_range>> all_cuts(std::int64_t layers) {
  std::vector<std::vector<learn::layer_range>> out;
  for (unsigned bits = 0; bits < 1U << (layers - 1); ++bits) {
    std::vector<learn::layer_range> cut;
    std::int64_t first = 0;
    for (std::int64_t i = 1; i <= layers; ++i)
      if (i == layers || (bits >> (i - 1) & 1U) != 0) {
        cut.push_back({first, i});
        first = i;
      }
    out.push_back(std::move(cut));
  }
  return out;
}

} // namespace shoal::test
