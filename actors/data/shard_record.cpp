#include "actors/data/shard_record.hpp"

#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

namespace shoal::actors {

namespace {

using role = replica_role;
using two_words = std::array<std::uint64_t, 2>;

// The first byte of a shard's record.
constexpr std::byte alone{0}, has_replicas{1};

} // namespace

payload shard_record::pack() const {
  if (!replica && certificate.empty()) return {};
  std::vector<std::byte> bytes{replica ? has_replicas : alone};
  const auto add = [&bytes](const void* from, std::size_t size) {
    const auto* first = static_cast<const std::byte*>(from);
    bytes.insert(bytes.end(), first, first + size);
  };
  if (replica) {
    const two_words words{replica->index_block, static_cast<std::uint64_t>(replica->role)};
    add(words.data(), sizeof words);
  }
  add(certificate.data(), certificate.size());
  return payload{std::move(bytes)};
}

std::optional<shard_record> shard_record::unpack(const payload& from) {
  shard_record out;
  if (from.is_size_only()) return std::nullopt;
  if (from.size() == 0) return out;
  auto bytes = from.bytes();
  if (bytes[0] != alone && bytes[0] != has_replicas) return std::nullopt;
  const bool with_replica = bytes[0] == has_replicas;
  bytes = bytes.subspan(1);
  if (with_replica) {
    two_words words;
    if (bytes.size() < sizeof words) return std::nullopt;
    std::memcpy(words.data(), bytes.data(), sizeof words);
    if (words[0] > last_index_block || words[1] > static_cast<std::uint64_t>(role::yielding))
      return std::nullopt;
    out.replica = replica_record{words[0], static_cast<actors::replica_role>(words[1])};
    bytes = bytes.subspan(sizeof words);
  }
  out.certificate.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return out;
}

} // namespace shoal::actors
