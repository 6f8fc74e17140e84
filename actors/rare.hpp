// Branches that protocols may take at any time and hardly ever do: what a full, busy, slow or
// forgetful host does. `rare_branches` of a scenario makes them likely (host::rare), so that what
// follows from them is tested and not only thought about; otherwise nobody takes them. Source:
// FoundationDB's BUGGIFY (Zhou et al., SIGMOD 2021, section 4.2).
#pragma once

#include <array>
#include <string_view>

namespace shoal::actors::rare {

inline constexpr std::string_view hurried =
    "matchmaking.hurried"; ///< as leader, we wait for nobody any more
inline constexpr std::string_view full =
    "matchmaking.full"; ///< as leader, we refuse one for whom there is no room
inline constexpr std::string_view donor_busy = "state.busy";   ///< as donor, we have no time
inline constexpr std::string_view donor_stops = "state.stops"; ///< nor any more, half-way through
inline constexpr std::string_view replicas_forgotten =
    "dht.replicas_forgotten"; ///< who keeps a key has to be looked up again
inline constexpr std::string_view query_dropped = "dht.query_dropped"; ///< we do not answer
inline constexpr std::string_view receipt_dropped =
    "dht.receipt_dropped"; ///< we keep a record and do not say so
inline constexpr std::string_view looks_late =
    "peer.looks_late"; ///< we look at the others' records as late as we may
inline constexpr std::string_view commit_twice = "commit.twice"; ///< we hand a commit in twice

inline constexpr std::array<std::string_view, 9> all{
    hurried,         full,       donor_busy,  donor_stops, replicas_forgotten, query_dropped,
    receipt_dropped, looks_late, commit_twice};

} // namespace shoal::actors::rare
