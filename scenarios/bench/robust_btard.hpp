// The defence `btard` of the bench: CenteredClip, audits by the plan of the real protocol
// (actors/trust/audit_plan.hpp), and bans at once. A validator contributes nothing to the step
// after its audit. Attackers that are drawn as validators find everything right. Members that lie
// about anything but their values are left to the tests of the protocol.
#pragma once

#include "scenarios/bench/robust.hpp"

namespace shoal::scenarios {

/// Options: `radius` (1), for a contribution of target_batch / members samples, and `validators`
/// (1).
defence_definition btard_defence();

} // namespace shoal::scenarios
