// The add-one bigram table, which counts pairs of bytes. A model that cannot beat the table has
// learnt nothing about context.
//   p(b | a) = (count(a b) + 1) / (count(a) + 256), counts over adjacent bytes of the training
//   segments
#pragma once

#include <cstdint>
#include <span>

namespace shoal::learn {

/// Mean of -ln p(b | a), in nats per byte, over the adjacent bytes of the held-out segments. No
/// pair crosses from one segment to the next. 0 if there is no held-out pair.
double bigram_loss(std::span<const std::span<const std::uint8_t>> train,
                   std::span<const std::span<const std::uint8_t>> held_out);

/// The same for one segment each.
double bigram_loss(std::span<const std::uint8_t> train, std::span<const std::uint8_t> held_out);

} // namespace shoal::learn
