// IDX files, as MNIST has them: bytes of a few dimensions, plain or packed by gzip.
// Source: LeCun et al., "The MNIST database of handwritten digits", section "File formats".
#pragma once

#include "kernels/base/result.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace shoal::scenarios {

struct idx_bytes {
  std::vector<std::size_t> dimensions;
  std::vector<unsigned char> values; ///< row by row
};

/// Reads `path`, or `path` with the ending .gz. Errors: neither can be read, or is an IDX file of
/// bytes; more than 1 GiB.
result<idx_bytes> read_idx(const std::string& path);

} // namespace shoal::scenarios
