// All observers of a run (scenarios/observe/observers) behind one object. The runner tells it
// everything; it keeps the books' time, asks for a row of metrics when one is due, and forwards.
// Nothing here influences the run. Thread safety: none; all calls come under one lock. Times never
// go back.
//
// A process of a cluster sees one host only (observer_options::view). Then rounds, samples and
// peers are those of this host. A rule that takes several members to judge is not judged. The logs
// are flushed as they grow, so that a process that is killed leaves its knowledge behind.
#pragma once

#include "actors/ids.hpp"
#include "kernels/base/digest.hpp"
#include "scenarios/observe/observer_options.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::actors {
class observation;
} // namespace shoal::actors

namespace shoal::scenarios {

class run_observer;
struct run_books;

/// The figures of the live progress line.
struct run_progress {
  duration time{};
  std::uint64_t epoch = 0;
  std::uint64_t samples = 0;        ///< in completed rounds
  std::optional<double> train_loss; ///< in the last row of metrics that has a loss
  std::optional<double> held_out_loss;
  std::uint64_t peers_joined = 0, peers_left = 0, peers_alive = 0, peers_in_sync = 0;
  std::uint64_t events = 0;
  std::uint64_t violations = 0;
};

class run_observers {
public:
  /// `directory` may be null: then nothing is written. Errors: a file cannot be created.
  static result<std::unique_ptr<run_observers>> create(observer_options options,
                                                       const run_directory* directory);
  ~run_observers();
  run_observers(const run_observers&) = delete;

  /// Each event of the fabric, in order.
  void on_event(const netem::delivered_event& event);
  /// Each transfer of bulk, when it ends.
  void on_transfer(const netem::transfer_record& what);
  /// An actor of `peer`, on machine `machine`, observes `what`. Hosts without a peer (the shard's)
  /// observe too, under an id that never started; the log's sample does not leave them out.
  void on_observation(duration time, actors::peer_id peer, std::uint32_t machine,
                      std::string_view host_name, const actors::observation& what);
  /// An incarnation of a peer's host starts or is killed. Not called for hosts without a peer.
  /// `reason` is a word for peers.csv. `machine` and `incarnation` are those of identify().
  void on_host_started(duration time, actors::peer_id peer, std::string_view host_name,
                       std::uint32_t machine, std::uint32_t incarnation);
  void on_host_killed(duration time, actors::peer_id peer, std::string_view reason = "killed");
  /// An actor of this process reached this probe.
  void on_point(std::string_view point);
  /// A fault of the scenario strikes these hosts, or its effect on them is over. Without `hosts`
  /// the fault is about all hosts. `cuts_off`: the fault keeps hosts from hearing of others.
  void on_fault(duration time, std::size_t number, const char* action, bool begins, bool cuts_off,
                const std::vector<std::string>& hosts);
  void on_held_out_loss(duration time, double loss);
  /// The run ends: all peers are told to leave.
  void on_ending(duration time);
  /// The time is now `time`. On the wall clock a run may have no events for long. A caller that
  /// calls this now and then still gets rows and metrics.
  void on_time(duration time);

  run_progress progress() const;
  /// The hash of the history so far.
  digest event_hash() const;
  const round_counts& rounds() const noexcept;
  const invariants& checks() const noexcept;
  const metrics& values() const noexcept;
  /// Hands what the files hold so far to the operating system.
  void flush();
  /// The first error of a log (disk full), if any. The run should end; finish() returns it too.
  const std::optional<failure>& write_error() const noexcept;

  /// Ends all books and the files of all observers. The caller writes summary.json, and may add a
  /// baseline before. Call it once. Errors: a file cannot be written; `into` has the summary all
  /// the same.
  result<void> finish(const end_facts& facts, summary& into);

private:
  run_observers(observer_options options, const run_directory* directory);
  void advance(duration time);
  void add_row(duration time);
  void left(duration time, actors::peer_id peer, std::string_view reason);

  std::unique_ptr<run_books> books_;
  std::vector<std::unique_ptr<run_observer>> all_;
  std::vector<run_observer*> watching_events_; // the observers that see events
  duration next_row_{};
};

} // namespace shoal::scenarios
