// BLAKE3, for long vectors. The digest of 1 KiB pieces is the root of a binary tree, so one core
// computes several pieces at once. That is about five times as fast as hash_of() (digest.hpp).
// Source: O'Connor, Aumasson, Neves and Wilcox-O'Hearn, "BLAKE3: one function, fast everywhere",
// 2020, sections 2.1 to 2.6.
#pragma once

#include "kernels/base/digest.hpp"

#include <cstddef>
#include <span>

namespace shoal {

/// The first 32 bytes of BLAKE3's output, without a key. They are the same on every processor.
/// Complexity: one pass over the bytes, and 64 bytes of memory for each KiB.
digest tree_hash_of(std::span<const std::byte> bytes);

} // namespace shoal
