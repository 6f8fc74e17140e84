// The built-in kinds of coders, a line each. NAME_coder() stands in coder_NAME.cpp.
#include "kernels/learn/pictures/picture_coder.hpp"

#include <cmath>

#define SHOAL_PICTURE_CODERS(X)                                                                    \
  X(kmeans)                                                                                        \
  X(vq_vae)

namespace shoal::learn {

#define SHOAL_DECLARE(name) picture_coder_kind name##_coder();
SHOAL_PICTURE_CODERS(SHOAL_DECLARE)
#undef SHOAL_DECLARE

definition_list<picture_coder_kind>& picture_coders() {
#define SHOAL_MAKE(name) name##_coder(),
  static definition_list<picture_coder_kind> all{SHOAL_PICTURE_CODERS(SHOAL_MAKE)};
#undef SHOAL_MAKE
  return all;
}

result<std::size_t> patches_on_a_side(std::span<const picture> pictures, std::size_t patch) {
  if (pictures.empty()) return failure{"codebook: there are no pictures to learn from"};
  const auto pixels = pictures[0].width;
  for (const auto& one : pictures)
    if (one.width != pixels || one.height != pixels)
      return failure{"codebook: pictures must be squares of one size"};
  if (patch == 0 || pixels % patch != 0)
    return failure{"codebook: patches of " + std::to_string(patch) +
                   " pixels do not divide pictures of " + std::to_string(pixels)};
  const auto side = pixels / patch;
  if (side > coder_grid::most_side)
    return failure{"codebook: pictures of " + std::to_string(pixels) + " pixels have " +
                   std::to_string(side) + " patches on a side, and a grid has at most " +
                   std::to_string(coder_grid::most_side)};
  return side;
}

double code_entropy(std::span<const std::vector<token_id>> pictures, std::size_t codes) {
  std::vector<double> counts(codes);
  double total = 0, out = 0;
  for (const auto& one : pictures)
    for (const auto code : one) {
      counts[static_cast<std::size_t>(code)] += 1;
      total += 1;
    }
  for (const double count : counts)
    if (count > 0) out -= count / total * std::log2(count / total);
  return out;
}

} // namespace shoal::learn
