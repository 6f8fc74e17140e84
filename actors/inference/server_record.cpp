#include "actors/inference/server_record.hpp"

#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

namespace shoal::actors {

namespace {

using words = std::array<std::uint64_t, 6>;
constexpr std::uint64_t most_layers = 4096;

} // namespace

payload server_record::pack() const {
  const words out{layers.first, layers.last, layer_ns, cache_left, model, drains ? 1U : 0U};
  std::vector<std::byte> bytes(sizeof out);
  std::memcpy(bytes.data(), out.data(), sizeof out);
  return payload{std::move(bytes)};
}

std::optional<server_record> server_record::unpack(const payload& from) {
  words in;
  if (from.is_size_only() || from.size() != sizeof in) return std::nullopt;
  std::memcpy(in.data(), from.bytes().data(), sizeof in);
  if (in[0] >= in[1] || in[1] > most_layers || in[5] > 1) return std::nullopt;
  return server_record{{static_cast<std::uint32_t>(in[0]), static_cast<std::uint32_t>(in[1])},
                       in[2],
                       in[3],
                       in[4],
                       in[5] == 1};
}

} // namespace shoal::actors
