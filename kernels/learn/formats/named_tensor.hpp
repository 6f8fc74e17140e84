// A tensor of float32 with its name, as files of models hold it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace shoal::learn {

struct named_tensor {
  std::string name{};
  std::vector<std::int64_t> shape{}; ///< empty for a scalar
  std::vector<float> values{};       ///< [product of shape], row-major
};

} // namespace shoal::learn
