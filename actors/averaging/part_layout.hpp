// How a group cuts its vector into parts and chunks, and what the bytes of a chunk are on the wire.
// Plain arithmetic over the leader's boundaries; a codec is null where values travel as they are.
#pragma once

#include "actors/averaging/part_reduction.hpp"
#include "actors/averaging/round.hpp"
#include "kernels/base/units.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace shoal::actors {

class part_layout {
public:
  using codec_ptr = std::shared_ptr<const kernels::vector_codec>;

  /// Part p has the values from boundaries[p] to boundaries[p + 1]. `size_only`: values have a size
  /// and no content.
  part_layout(std::vector<std::uint64_t> boundaries, std::uint64_t chunk_bytes, bool size_only);

  chunk_grid grid(std::uint32_t part) const {
    return {4 * (boundaries_[part + 1] - boundaries_[part]), chunk_bytes_};
  }
  /// The index in the vector of a chunk's first value.
  std::uint64_t first_value(std::uint32_t part, std::uint32_t chunk) const {
    return boundaries_[part] + grid(part).offset(chunk) / 4;
  }
  /// A chunk's values in `vector`, which has all parts.
  payload slice(const payload& vector, std::uint32_t part, std::uint32_t chunk) const;

  /// The bytes that `codec` writes for the chunk; without a codec the same payload. Requires:
  /// values that are not size-only are finite.
  payload to_wire(const codec_ptr& codec, std::uint32_t part, std::uint32_t chunk,
                  const payload& values) const;
  /// Nothing if to_wire never makes these bytes.
  std::optional<payload> from_wire(const codec_ptr& codec, std::uint32_t part, std::uint32_t chunk,
                                   const payload& wire) const;
  /// The chunk of the part that begins at byte `offset`, if `wire` can be its bytes.
  std::optional<std::uint32_t> find_chunk(const codec_ptr& codec, std::uint32_t part,
                                          std::uint64_t offset, const payload& wire) const;
  /// Bytes of a whole part as `codec` writes it in one piece.
  double wire_bytes(const codec_ptr& codec, std::uint32_t part) const;

private:
  std::vector<std::uint64_t> boundaries_;
  std::uint64_t chunk_bytes_;
  bool size_only_;
};

/// How long the line of each part's reducer is busy with a round; 0 for an empty part. The rates
/// are those that the members state. The model is that of kernels/averaging_plan.hpp, with bytes as
/// the codecs write them. No time is above `longest`.
std::vector<duration> line_times(const part_layout& layout, const std::vector<member_info>& members,
                                 const round_codecs& codecs, duration longest);

} // namespace shoal::actors
