#include "actors/averaging/part_layout.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <utility>

namespace shoal::actors {

part_layout::part_layout(std::vector<std::uint64_t> boundaries, std::uint64_t chunk_bytes,
                         bool size_only)
    : boundaries_(std::move(boundaries)), chunk_bytes_(chunk_bytes), size_only_(size_only) {}

payload part_layout::slice(const payload& vector, std::uint32_t part, std::uint32_t chunk) const {
  const auto in = grid(part);
  return vector.slice(4 * boundaries_[part] + in.offset(chunk), in.size(chunk));
}

payload part_layout::to_wire(const codec_ptr& codec, std::uint32_t part, std::uint32_t chunk,
                             const payload& values) const {
  if (!codec) return values;
  if (values.is_size_only())
    return payload::size_only(codec->bytes(first_value(part, chunk), values.size() / 4));
  auto bytes = codec->encode(first_value(part, chunk), values.floats());
  SHOAL_CHECK(bytes.ok(), "values that are finite can be written");
  return payload{std::move(*bytes)};
}

std::optional<payload> part_layout::from_wire(const codec_ptr& codec, std::uint32_t part,
                                              std::uint32_t chunk, const payload& wire) const {
  const auto bytes = grid(part).size(chunk);
  // Short payloads without values come over a real network as zeros (payload_inspect.cpp).
  if (size_only_) return payload::size_only(bytes);
  if (!codec) return wire;
  float_buffer values(bytes / 4);
  if (!codec->decode(first_value(part, chunk), wire.bytes(), values.floats())) return std::nullopt;
  return values.slice(0, bytes);
}

std::optional<std::uint32_t> part_layout::find_chunk(const codec_ptr& codec, std::uint32_t part,
                                                     std::uint64_t offset,
                                                     const payload& wire) const {
  const auto in = grid(part);
  if (offset >= in.part_bytes || offset % in.piece != 0 || (wire.is_size_only() && !size_only_))
    return std::nullopt;
  const auto chunk = static_cast<std::uint32_t>(offset / in.piece);
  const auto bytes = in.size(chunk);
  if (codec ? !codec->fits(first_value(part, chunk), bytes / 4, wire.size()) : wire.size() != bytes)
    return std::nullopt;
  return chunk;
}

double part_layout::wire_bytes(const codec_ptr& codec, std::uint32_t part) const {
  const auto count = boundaries_[part + 1] - boundaries_[part];
  return static_cast<double>(codec ? codec->bytes(boundaries_[part], count) : 4 * count);
}

std::vector<duration> line_times(const part_layout& layout, const std::vector<member_info>& members,
                                 const round_codecs& codecs, duration longest) {
  const auto size = static_cast<std::uint32_t>(members.size());
  std::vector<double> slices, means;
  double all_slices = 0, all_means = 0, senders = 0, receivers = 0;
  for (std::uint32_t p = 0; p < size; ++p) {
    all_slices += slices.emplace_back(layout.wire_bytes(codecs.contributions, p));
    all_means += means.emplace_back(layout.wire_bytes(codecs.means, p));
    senders += members[p].weight > 0 ? 1 : 0;
    receivers += members[p].takes != 0 ? 1 : 0;
  }
  std::vector<duration> out(size);
  for (std::uint32_t p = 0; p < size; ++p) {
    if (layout.grid(p).count() == 0) continue;
    const auto& who = members[p];
    const double sends = who.weight > 0 ? 1 : 0, receives = who.takes != 0 ? 1 : 0;
    const auto up = sends * (all_slices - slices[p]) + (receivers - receives) * means[p];
    const auto down = (senders - sends) * slices[p] + receives * (all_means - means[p]);
    const auto seconds = [](double bytes, std::uint64_t rate) {
      return 8 * bytes / static_cast<double>(std::max<std::uint64_t>(rate, 1));
    };
    const auto busy = std::max(seconds(up, who.rate_up), seconds(down, who.rate_down));
    out[p] = from_seconds(std::min(busy, to_seconds(longest)));
  }
  return out;
}

} // namespace shoal::actors
