// The data that a page shows of a run. The same listener collects this data during the run, or
// later from the run directory, so that both give the same numbers. The size of a view is bounded:
//   - time is in 512 bins, and rows of tables are thinned;
//   - a run with more than 300 hosts shows groups instead of hosts;
//   - only the latest, slowest and failed rounds keep their members and transfers.
//
// A view is made of sections, each a JSON value (tools/web/src/view.ts has their types):
//   run           the identity of the run, how to repeat it, and notes on missing data
//   scenario      the text of run.yaml
//   summary       summary.json, null before the end
//   series        rows of metrics.csv by column, with neighbours merged if there are many
//   epochs        rows of epochs.csv
//   sessions      for each host (or group) and bin, the time in each state
//   participants  the contribution and loss of each host
//   rounds        all rounds as points, some rounds with members and transfers
//   faults        times, actions and struck hosts
//   cases         each accused member: who said what, the proof, and the hosts that banned it
//   pictures      what a model drew after each checkpoint; only for runs that draw
//   guard         Byzantine-tolerant rounds: audits, accusations, verdicts, distances
//   traffic       bytes by host, region and class
//   links         the share of each line's rate that bulk transfers used
//   flows         bulk bytes from region to region over time, and the delays between regions
//   stages        the hosts and the load of each stage over time, and moves; only for pipelines
//   experts       who holds each expert, and its use over time; only for mixtures of experts
//   growth        the samples of each host (or group) over time
//   latest        the newest arrivals and ends of hosts
//   nodes         each life of each host; only for a cluster
// Thread safety: all members may be called from any thread.
#pragma once

#include "scenarios/observe/run_listener.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shoal::scenarios {

class run_view final : public run_listener {
public:
  run_view();
  ~run_view() override;

  void begun(std::string_view run_yaml) override;
  void metrics_row(std::string_view row) override;
  void epoch_rows(std::string_view rows) override;
  void host_started(duration time, std::string_view host) override;
  void host_ended(duration time, std::string_view host, std::string_view reason) override;
  void phase(duration time, std::string_view host, std::string_view phase) override;
  void round_ended(duration time, const heard_end& what) override;
  void round(const heard_round& what) override;
  void contribution(duration time, std::string_view host, std::uint64_t samples,
                    double loss) override;
  void fault(duration time, std::uint64_t number, std::string_view action, bool begins,
             std::span<const std::string> hosts) override;
  void case_event(const scenarios::case_event& what) override;
  void guarded_round(const scenarios::guarded_round& what) override;
  void stage_held(duration time, std::string_view host,
                  std::optional<std::uint32_t> stage) override;
  void stage_worked(duration time, const heard_work& what) override;
  void expert(duration time, const heard_expert& what) override;
  void transfer(const heard_transfer& what) override;
  bool wants_traffic() override;
  void traffic(std::span<const sent_bytes> all) override;
  void ended(std::string_view summary) override;

  /// Adds a sentence that says which data are missing, and why.
  void note(std::string text);
  /// Shows the pictures epoch-N.png of this folder, each time as they are then.
  void pictures_from(std::filesystem::path folder);
  /// One life of one host of a cluster.
  struct node {
    std::string name, group, region, address, directory;
    /// 'running', 'ended', 'interrupted', 'silent' or 'linked'. A silent node stopped writing
    /// without a reason. A linked node has links with others, and its figures are unknown.
    std::string state;
    duration began{}, last{};
    std::uint64_t epoch = 0, rounds = 0, rounds_not_ok = 0, samples = 0, bytes_sent = 0;
    double samples_per_second = 0; ///< NaN if the rate is unknown
  };
  /// Replaces the nodes of the view. For the page of a whole cluster.
  void set_nodes(std::vector<node> all);
  /// Sets the state of the run. 'unfinished' means that the files have no end of the run: the
  /// process was killed or still runs.
  void set_state(std::string state);

  struct section {
    std::string name;
    std::string json;
  };
  /// Returns the current sections. Complexity: some milliseconds.
  std::vector<section> sections();
  /// Returns the current sections as one JSON object.
  std::string document();

private:
  struct state;
  std::unique_ptr<state> state_;
};

/// The place of a run on a page with several runs.
struct run_place {
  std::string title;
  std::optional<std::size_t> beside{}; ///< index of the run's prediction, drawn beside the run
  std::optional<std::size_t> of{};     ///< index of the cluster, if this is the view of one host
};
/// Returns `"title":…,"beside":…,"of":…`, the start of a JSON object.
std::string place_text(const run_place& place);

/// Returns `sections` as one JSON object.
std::string as_object(const std::vector<run_view::section>& sections);

} // namespace shoal::scenarios
