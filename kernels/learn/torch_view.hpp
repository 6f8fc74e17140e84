// A vector of numbers as a tensor of libtorch. Only sources of the module of torch_module.cpp
// include this file.
#pragma once

#define AT_PER_OPERATOR_HEADERS
#include "kernels/learn/tokens.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

#include <cstdint>
#include <span>
#include <vector>

namespace shoal::learn {

/// `values` as a tensor of that shape, without a copy. libtorch has no constant tensors; nobody may
/// write to this one.
inline at::Tensor view_of(std::span<const float> values, const std::vector<std::int64_t>& shape) {
  return at::from_blob(const_cast<float*>(values.data()), shape, at::kFloat);
}
inline at::Tensor view_of(std::span<const token_id> tokens) {
  return at::from_blob(const_cast<token_id*>(tokens.data()),
                       {static_cast<std::int64_t>(tokens.size())}, at::kLong);
}

} // namespace shoal::learn
