#include "actors/ids.hpp"

#include <fmt/format.h>

#include <cstring>

namespace shoal::actors {

std::string id128::hex() const {
  return fmt::format("{:016x}{:016x}", high, low);
}

id128 id128::from(const digest& value) noexcept {
  id128 out;
  std::memcpy(&out.high, value.bytes.data(), 8);
  std::memcpy(&out.low, value.bytes.data() + 8, 8);
  return out;
}

} // namespace shoal::actors
