// One hostile member of a round_lab: its messages with fields changed, signed anew with its own key
// where its signature belongs. And the promises that the other members keep whatever it says.
#pragma once

#include "tests/actors/support/round_lab.hpp"

#include <caf/message.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace shoal::actors::testing {

/// The number of fields of a message, with those of nested structs, and with each list once more.
/// 0: no message of a round.
std::size_t field_count(const caf::message& content);
/// The message with another value of one field. `how` chooses the value. Requires: field is below
/// field_count().
caf::message with_changed_field(const round_lab& lab, const caf::message& content,
                                std::size_t field, std::uint8_t how);
/// The number of ways in which one field changes.
inline constexpr std::uint8_t ways_to_change = 12;

/// The message with the signatures that `self` can make: its votes and declines, its entry of a
/// roster, and the roster that it leads.
caf::message signed_again(const round_lab& lab, std::uint32_t self, const caf::message& content);

/// The broken promises, one sentence for each. Each honest member that lives ends with a result or
/// with a reason. Results of one round have the same bits, and a certificate that holds. No honest
/// member is accused. Requires: lab.run() has returned.
std::vector<std::string> harm_done(const round_lab& lab, std::uint32_t hostile);

} // namespace shoal::actors::testing
