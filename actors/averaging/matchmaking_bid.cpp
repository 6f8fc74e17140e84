// A leader's bid in its record: its deadline, and whether it leads.
#include "actors/averaging/matchmaking.hpp"

#include <cstring>
#include <limits>
#include <utility>
#include <vector>

namespace shoal::actors {

payload matchmaking::bid::pack() const {
  std::vector<std::byte> out(sizeof deadline + 1);
  std::memcpy(out.data(), &deadline, sizeof deadline);
  out.back() = leads ? std::byte{1} : std::byte{0};
  return payload{std::move(out)};
}

matchmaking::bid matchmaking::bid::unpack(const payload& value) {
  bid out{std::numeric_limits<std::int64_t>::max(), true};
  if (value.is_size_only() || value.size() != sizeof out.deadline + 1) return out;
  std::memcpy(&out.deadline, value.bytes().data(), sizeof out.deadline);
  out.leads = value.bytes().back() != std::byte{0};
  return out;
}

} // namespace shoal::actors
