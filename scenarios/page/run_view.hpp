// What a page shows of a run, kept while the run goes on, or read from its directory later: the
// same listener, so the same numbers. Bounded whatever the run: time is in 512 bins, rows of tables
// are thinned, hosts beyond 300 are shown as their groups, of rounds those that came last, took
// longest or went wrong are kept with their transfers.
//
// A view is made of sections, each a JSON value (tools/web/src/view.ts has their types):
//   run           which run this is, how to repeat it, what it lacks
//   scenario      the text of run.yaml
//   summary       summary.json, null before the end
//   series        rows of metrics.csv by column, neighbours merged when there are many
//   epochs        rows of epochs.csv
//   sessions      for each host (or group) and bin how its time was spent
//   participants  who contributed how much, and with what loss
//   rounds        all as points; some with members and transfers
//   faults        when, what, whom
//   traffic       bytes by host, region and class
//   links         how much of each line's rate bulk used
//   nodes         of a cluster: each life of each host; elsewhere there is no such section
// Thread safety: all members may be called from any thread.
#pragma once

#include "scenarios/observe/run_listener.hpp"

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
  void transfer(const heard_transfer& what) override;
  bool wants_traffic() override;
  void traffic(std::span<const sent_bytes> all) override;
  void ended(std::string_view summary) override;

  /// A sentence about what is missing, and why.
  void note(std::string text);
  /// One life of one host of a cluster.
  struct node {
    std::string name, group, region, address, directory;
    std::string state; ///< 'running', 'ended', 'interrupted', or 'silent': it writes no more, and
                       ///< did not say why
    duration began{}, last{};
    std::uint64_t epoch = 0, rounds = 0, rounds_not_ok = 0, samples = 0, bytes_sent = 0;
    double samples_per_second = 0; ///< not finite: not known
  };
  /// For the page of a whole cluster, in place of those told before.
  void set_nodes(std::vector<node> all);
  /// The files ended before the run did (a killed process), or the run has not ended yet:
  /// 'unfinished'.
  void set_state(std::string state);

  struct section {
    std::string name;
    std::string json;
  };
  /// All of it as of now. Complexity: some milliseconds.
  std::vector<section> sections();
  /// The sections as one JSON object.
  std::string document();

private:
  struct state;
  std::unique_ptr<state> state_;
};

/// Where a page shows one of several runs.
struct run_place {
  std::string title;
  std::optional<std::size_t> beside{}; ///< the run that it is drawn beside: its prediction
  std::optional<std::size_t> of{};     ///< it is what one host of this cluster saw
};
/// As `"title":…,"beside":…,"of":…`, the beginning of a JSON object.
std::string place_text(const run_place& place);

/// Sections as one JSON object.
std::string as_object(const std::vector<run_view::section>& sections);

} // namespace shoal::scenarios
