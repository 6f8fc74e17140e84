// The cut of a model's layers into pieces of equal size.
#pragma once

#include "kernels/base/check.hpp"
#include "kernels/learn/layered_model.hpp"

#include <cstdint>
#include <vector>

namespace shoal::learn {

/// Cuts `layers` layers into pieces whose numbers of layers differ by at most one. Requires:
/// 0 < pieces <= layers.
inline std::vector<layer_range> even_cut(std::int64_t layers, std::int64_t pieces) {
  SHOAL_CHECK(pieces > 0 && layers >= pieces, "a piece has a layer");
  std::vector<layer_range> out;
  for (std::int64_t piece = 0, first = 0; piece < pieces; ++piece) {
    const auto last = first + layers / pieces + (piece < layers % pieces ? 1 : 0);
    out.push_back({first, last});
    first = last;
  }
  return out;
}

} // namespace shoal::learn
