#include "scenarios/schema/scenario.hpp"

namespace shoal::scenarios {

// These functions are large, and forty sources would compile them again.

peer_group::peer_group() = default;
peer_group::peer_group(const peer_group&) = default;
peer_group::peer_group(peer_group&&) noexcept = default;
peer_group& peer_group::operator=(const peer_group&) = default;
peer_group& peer_group::operator=(peer_group&&) noexcept = default;
peer_group::~peer_group() = default;

scenario::scenario() = default;
scenario::scenario(const scenario&) = default;
scenario::scenario(scenario&&) noexcept = default;
scenario& scenario::operator=(const scenario&) = default;
scenario& scenario::operator=(scenario&&) noexcept = default;
scenario::~scenario() = default;

} // namespace shoal::scenarios
