// One observer of a run: an output or a count that the runner's facts are turned into. A new
// protocol adds a file in scenarios/observe/observers and a line in observers.cpp. An observer
// overrides the calls that it wants to hear. An observer owns its files, its section of the summary
// and its metrics. The books hold the state that several observers read.
#pragma once

#include "actors/observe.hpp"
#include "scenarios/observe/history.hpp"
#include "scenarios/observe/observer_options.hpp"
#include "scenarios/observe/peer_table.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::scenarios {

/// State that several observers read. Only the observer of a book changes it; run_observers moves
/// `now`.
struct run_books {
  explicit run_books(observer_options with, const run_directory* files,
                     std::function<void(const swarm_round&)> on_final_round);
  run_books(const run_books&) = delete; // the parts refer to each other

  observer_options options;
  const run_directory* directory; ///< null: nothing is written
  host_names names;
  peer_table peers;
  history_hash history;
  invariants checks;
  round_book rounds;
  metrics values;
  duration now{};
  std::uint64_t samples = 0; ///< in completed rounds
  std::optional<double> train_loss, held_out_loss;
  /// Tells all observers that a peer left, unless they know it already.
  std::function<void(duration time, actors::peer_id peer, std::string_view reason)> left;

  /// The name of a peer, a data shard or a peer in another process. 'peer ...' if nobody knows it.
  std::string name_of(actors::peer_id peer) const;
};

struct seen_observation {
  duration time;
  actors::peer_id peer;
  std::uint32_t machine;
  std::string_view host;
  const actors::observation& what;
};

/// An incarnation of a peer's host that starts or ends.
struct seen_peer {
  duration time;
  actors::peer_id peer;
  std::string_view host;
  std::string_view reason; ///< empty when it starts
};

struct seen_fault {
  duration time;
  std::size_t number;
  const char* action;
  bool begins;
  bool cuts_off;                         ///< the fault keeps hosts from hearing of others
  const std::vector<std::string>& hosts; ///< empty: the fault affects all hosts
};

class run_observer {
public:
  virtual ~run_observer() = default;

  /// Whether on_event() is to be called. Most observers need no events, and events are frequent.
  virtual bool sees_events() const { return false; }
  virtual void on_event(const netem::delivered_event&) {}
  virtual void on_transfer(const netem::transfer_record&) {}
  virtual void on_observation(const seen_observation&) {}
  virtual void on_peer_started(const seen_peer&) {}
  virtual void on_peer_left(const seen_peer&) {}
  /// A round is final.
  virtual void on_round(const swarm_round&) {}
  virtual void on_fault(const seen_fault&) {}
  /// An actor reached this probe.
  virtual void on_point(std::string_view) {}
  virtual void on_held_out_loss(double) {}
  /// The books' time has moved.
  virtual void on_time() {}

  /// Sets the observer's values in the books' metrics: a row of metrics.csv is due.
  virtual void set_metrics(duration) {}
  /// A row of metrics.csv, with its newline.
  virtual void on_row(const std::string&) {}

  /// Makes the content of its files readable now, in case the process is killed.
  virtual void flush() {}
  /// Set when a file cannot be written (disk full).
  virtual const std::optional<failure>* error() const { return nullptr; }
  /// The run is over. The observer adds its section of the summary and writes its last rows.
  virtual void finish(const end_facts&, summary&) {}
  /// Ends the files of the observer, after finish(). Only with a directory. Errors: a file cannot
  /// be written.
  virtual result<void> close() { return {}; }
};

/// Makes an observer for one run; null where the run has no use for it. Errors: a file cannot be
/// created.
using make_observer = result<std::unique_ptr<run_observer>> (*)(run_books&);

/// The observers of every run, in the order in which they are told. The list of observers.cpp, then
/// those that a program added.
const std::vector<make_observer>& observers();
/// Adds an observer to every run that begins later. Thread safety: none; call it before any run.
void add_observer(make_observer make);

/// A file of the run's directory with the header written; null without a directory.
result<std::unique_ptr<output_file>> open_table(const run_books& books, const char* name,
                                                const std::string& header);

} // namespace shoal::scenarios
