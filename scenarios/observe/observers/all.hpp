// Makers of the built-in observers, one file each; observers.cpp lists them.
#pragma once

#include "scenarios/observe/run_observer.hpp"

namespace shoal::scenarios::observing {

/// The hash of history.
result<std::unique_ptr<run_observer>> history(run_books& books);
/// The invariants.
result<std::unique_ptr<run_observer>> checks(run_books& books);
/// Tells the run's listener about hosts, rounds and faults.
result<std::unique_ptr<run_observer>> listener(run_books& books);
/// Rounds and how they ended.
result<std::unique_ptr<run_observer>> rounds(run_books& books);
/// Peers that join and leave, and peers.csv.
result<std::unique_ptr<run_observer>> peers(run_books& books);
/// Tells the run's listener about the phases of peers.
result<std::unique_ptr<run_observer>> phases(run_books& books);
/// Training and held-out losses.
result<std::unique_ptr<run_observer>> losses(run_books& books);
/// The reachability that peers believe to have, against the true one.
result<std::unique_ptr<run_observer>> reachability(run_books& books);
/// Totals of each virtual day.
result<std::unique_ptr<run_observer>> days(run_books& books);
/// Probes that actors reached, faults that struck, and messages that no correct peer sends.
result<std::unique_ptr<run_observer>> incidents(run_books& books);
/// The hosts of which others say that they broke the protocol.
result<std::unique_ptr<run_observer>> accusations(run_books& books);
/// The cases against members, and cases.jsonl.
result<std::unique_ptr<run_observer>> cases(run_books& books);
/// Audits, accusations and bans of Byzantine-tolerant rounds.
result<std::unique_ptr<run_observer>> security(run_books& books);
/// Byzantine-tolerant rounds one by one, and guard.jsonl.
result<std::unique_ptr<run_observer>> guard_rounds(run_books& books);
/// Bytes that hosts sent, and what the network between real hosts counts.
result<std::unique_ptr<run_observer>> network(run_books& books);
/// metrics.csv and metrics.prom.
result<std::unique_ptr<run_observer>> metric_rows(run_books& books);
/// traffic.csv.
result<std::unique_ptr<run_observer>> traffic(run_books& books);
/// contributions.csv.
result<std::unique_ptr<run_observer>> contributions(run_books& books);
/// The use of the experts of a mixture, and experts.csv.
result<std::unique_ptr<run_observer>> experts(run_books& books);
/// events.jsonl.zst.
result<std::unique_ptr<run_observer>> events(run_books& books);
/// transfers.jsonl.zst.
result<std::unique_ptr<run_observer>> transfers(run_books& books);
/// epochs.csv.
result<std::unique_ptr<run_observer>> epochs(run_books& books);

} // namespace shoal::scenarios::observing
