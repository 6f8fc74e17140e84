#include "kernels/learn/layered_model.hpp"

#include <algorithm>
#include <string>

namespace shoal::learn {

namespace {

using slots = std::vector<kernels::tensor_slot>;

/// Calls use(slot of the piece, slot of the whole) for each tensor of the piece.
template <class Use>
result<void> for_each_pair(const slots& whole, std::size_t whole_size, const slots& piece,
                           std::size_t piece_size, Use use) {
  if (whole_size != kernels::end_of(whole) || piece_size != kernels::end_of(piece))
    return failure{"layers: vectors of " + std::to_string(whole_size) + " and " +
                   std::to_string(piece_size) + " floats; the layouts have " +
                   std::to_string(kernels::end_of(whole)) + " and " +
                   std::to_string(kernels::end_of(piece))};
  for (const auto& part : piece) {
    const auto found = std::find_if(whole.begin(), whole.end(),
                                    [&](const auto& slot) { return slot.name == part.name; });
    if (found == whole.end() || found->shape != part.shape)
      return failure{"layers: the model has no tensor '" + part.name + "' of that shape"};
    use(part, *found);
  }
  return {};
}

} // namespace

slots without_gaps(slots tensors) {
  std::size_t offset = 0;
  for (auto& slot : tensors) {
    slot.offset = offset;
    offset += slot.size();
  }
  return tensors;
}

result<std::vector<float>> gather(const slots& whole, std::span<const float> values,
                                  const slots& piece) {
  std::vector<float> out(kernels::end_of(piece));
  const auto done = for_each_pair(
      whole, values.size(), piece, out.size(), [&](const auto& part, const auto& from) {
        std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(from.offset), from.size(),
                    out.begin() + static_cast<std::ptrdiff_t>(part.offset));
      });
  if (!done) return failure{done.error()};
  return out;
}

result<void> scatter_add(const slots& piece, std::span<const float> gradient, const slots& whole,
                         std::span<float> gradient_sum) {
  return for_each_pair(whole, gradient_sum.size(), piece, gradient.size(),
                       [&](const auto& part, const auto& into) {
                         for (std::size_t i = 0; i < part.size(); ++i)
                           gradient_sum[into.offset + i] += gradient[part.offset + i];
                       });
}

} // namespace shoal::learn
