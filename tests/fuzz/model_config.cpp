// config.json of models.
#include "kernels/learn/formats/model_config.hpp"

#include "tests/fuzz/targets.hpp"

namespace shoal::fuzz {

void model_config(bytes input) {
  const auto read = learn::parse_model_config(text_of(input), "any");
  if (!read) return must(read.error().starts_with("model: 'any' "), "an error says which file");
  const auto again = learn::parse_model_config(learn::model_config_json(*read), "again");
  must(again.ok() && *again == *read, "a written file reads back equal");
  const auto tensors = learn::tensors_of(*read);
  if (!tensors) return;
  for (const auto& tensor : *tensors)
    for (const auto extent : tensor.shape) must(extent > 0, "a tensor's sides are positive");
  must(learn::parameter_count(*tensors) > 0, "a model has parameters");
}

} // namespace shoal::fuzz
