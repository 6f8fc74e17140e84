// Failpoints: branches that a protocol may take at any time and hardly ever takes, as a full, busy,
// slow or forgetful host does. The option `failpoints` of a scenario takes them with a probability
// (host::failpoint), so that tests reach their consequences. Without it, no host takes them.
// Source: FoundationDB's BUGGIFY (Zhou et al., SIGMOD 2021, section 4.2).
#pragma once

#include <array>
#include <string_view>

namespace shoal::actors::failpoint {

/// A leader closes its group without waiting any longer.
inline constexpr std::string_view hurried = "matchmaking.hurried";
/// A leader refuses a follower as if its group were full.
inline constexpr std::string_view full = "matchmaking.full";
/// A donor refuses a download as if it were busy.
inline constexpr std::string_view donor_busy = "state.busy";
/// A donor stops in the middle of a download.
inline constexpr std::string_view donor_stops = "state.stops";
/// A DHT node forgets which nodes hold a key, and looks them up again.
inline constexpr std::string_view replicas_forgotten = "dht.replicas_forgotten";
/// A DHT node leaves a query unanswered.
inline constexpr std::string_view query_dropped = "dht.query_dropped";
/// A DHT node keeps a record and sends no receipt.
inline constexpr std::string_view receipt_dropped = "dht.receipt_dropped";
/// A peer reads the progress records as late as it may.
inline constexpr std::string_view looks_late = "peer.looks_late";
/// A peer sends a commit to the data shard twice.
inline constexpr std::string_view commit_twice = "commit.twice";

inline constexpr std::array<std::string_view, 9> all{
    hurried,         full,       donor_busy,  donor_stops, replicas_forgotten, query_dropped,
    receipt_dropped, looks_late, commit_twice};

} // namespace shoal::actors::failpoint
