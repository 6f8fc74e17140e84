#include "actors/averaging/guard_observations.hpp"

#include "actors/trust/verdict.hpp"

#include <fmt/format.h>

namespace shoal::actors {

namespace {

std::string_view kind_name(std::uint8_t kind) {
  return name_of(static_cast<case_kind>(kind));
}

} // namespace

std::string audit_planned::logged_fields() const {
  return fmt::format(R"("group":"{}","validator":{},"target":{})", group.hex(), validator, target);
}

std::string audited::logged_fields() const {
  return fmt::format(R"("group":"{}","validator":{},"target":{},"right":{})", group.hex(),
                     validator, target, right);
}

std::string accused_member::logged_fields() const {
  return fmt::format(R"("group":"{}","case":"{}","kind":"{}","accuser":{},"accused":{},"part":{})",
                     group.hex(), case_id.hex(), kind_name(kind), accuser, accused, part);
}

std::string case_decided::logged_fields() const {
  return fmt::format(
      R"("group":"{}","case":"{}","kind":"{}","accuser":{},"accused":{},"culprit":{},"signatures":{})",
      group.hex(), case_id.hex(), kind_name(kind), accuser, accused, culprit, signatures);
}

std::string contradiction_found::logged_fields() const {
  return fmt::format(R"("group":"{}","culprit":{},"what":"{}")", group.hex(), culprit, what);
}

std::string duty_failed::logged_fields() const {
  return fmt::format(R"("group":"{}","member":{},"what":"{}")", group.hex(), member, what);
}

} // namespace shoal::actors
