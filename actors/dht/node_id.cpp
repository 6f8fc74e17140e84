#include "actors/dht/node_id.hpp"

#include "actors/node_data.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>

namespace shoal::actors {

std::string node_id::hex() const {
  return fmt::format("{:016x}{:016x}{:08x}", high, middle, low);
}

node_id node_id::of_host(const member_id& member, const caf::node_id& node) noexcept {
  const auto* data = data_of(node);
  return {member.high, member.low, data != nullptr ? data->process_id() : 0};
}

node_id node_id::from(const digest& value) noexcept {
  node_id out;
  std::memcpy(&out.high, value.bytes.data(), 8);
  std::memcpy(&out.middle, value.bytes.data() + 8, 8);
  std::memcpy(&out.low, value.bytes.data() + 16, 4);
  return out;
}

node_id node_id::of_key(std::string_view key) {
  hasher h;
  h.add(std::string_view{"dht.key"}).add(key);
  return from(h.finish());
}

unsigned common_prefix(const node_id& a, const node_id& b) noexcept {
  auto d = distance(a, b);
  if (d.high != 0) return static_cast<unsigned>(std::countl_zero(d.high));
  if (d.middle != 0) return 64 + static_cast<unsigned>(std::countl_zero(d.middle));
  return 128 + static_cast<unsigned>(std::countl_zero(d.low));
}

node_id random_at(const node_id& of, unsigned prefix, rng& draws) {
  node_id out{draws.next(), draws.next(), static_cast<std::uint32_t>(draws.next())};
  // The bits before `prefix` are those of `of`, the bit at `prefix` is inverted, and the rest is
  // random.
  auto mix = [](std::uint64_t random, std::uint64_t fixed, unsigned width, int same) {
    if (same < 0) return random;
    auto keep = static_cast<unsigned>(same);
    auto all = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
    if (keep >= width) return fixed;
    auto bit = std::uint64_t{1} << (width - 1 - keep);
    auto tail = bit - 1;
    return (fixed & all & ~tail & ~bit) | (~fixed & bit) | (random & tail);
  };
  auto p = static_cast<int>(prefix);
  out.high = mix(out.high, of.high, 64, p);
  out.middle = mix(out.middle, of.middle, 64, p - 64);
  out.low = static_cast<std::uint32_t>(mix(out.low, of.low, 32, p - 128));
  return out;
}

} // namespace shoal::actors
