// Chains on the network: pages of certified rounds. Plain functions.
#pragma once

#include "actors/training/messages.hpp"
#include "actors/trust/chain.hpp"

#include <cstddef>
#include <span>

namespace shoal::actors {

class host;

/// The bounds on a page. At least one step is in a page that says `more`.
inline constexpr std::size_t most_page_steps = 256;
inline constexpr std::size_t most_page_members = 1024; ///< the sum over the rosters

/// The page of `own` after the newest common state.
chain_answer page_after(const chain& own, std::span<const chain_point> locator, const host& here);

/// True if a correct peer could send this page.
bool sensible(const chain_answer& page);

} // namespace shoal::actors
