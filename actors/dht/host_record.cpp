#include "actors/dht/host_record.hpp"

#include <fmt/format.h>

#include <utility>

namespace shoal::actors {

std::string host_subkey(const host& here) {
  return fmt::format("{:016x}", here.id());
}

record host_record(const host& here, caf::actor subject, payload value, duration lifetime) {
  record out;
  out.subkey = host_subkey(here);
  out.address = std::move(subject);
  out.value = std::move(value);
  out.expires_utc_ns = here.utc_ns() + lifetime.count();
  return out;
}

} // namespace shoal::actors
