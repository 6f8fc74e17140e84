// The state of a run_view, private to its sources. run_view.cpp fills the state, and
// run_view_text.cpp writes it as JSON.
#pragma once

#include "scenarios/observe/case_book.hpp"
#include "scenarios/observe/guard_book.hpp"
#include "scenarios/page/expert_grid.hpp"
#include "scenarios/page/run_facts.hpp"
#include "scenarios/page/run_view.hpp"
#include "scenarios/page/stage_columns.hpp"
#include "scenarios/page/thinned_rows.hpp"
#include "scenarios/page/time_bins.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace shoal::scenarios {

/// The states of sessions, in the order of the columns. A host that is gone has no state.
inline constexpr std::array<std::string_view, 4> session_states{"joining", "computing", "averaging",
                                                                "downloading"};

struct run_view::state {
  static constexpr std::size_t most_single_hosts = 300, most_units = 600, most_transfers = 200'000;
  static constexpr std::size_t most_points = 2048, most_ends = 2000, most_faults = 500,
                               most_attempts = 200, most_latest = 30;
  static constexpr std::size_t last_kept = 30, most_regions = 24, slowest_kept = 30, bad_kept = 80;

  struct group {
    group_facts facts;
    std::uint32_t first = 0;  ///< index of its first host
    bool peers = true;        ///< false: the data shard, or hosts without a group
    std::uint32_t region = 0; ///< index into the regions; beyond them: not on the map
  };
  struct host {
    bool seen = false, alive = false;
    std::int8_t phase = -1; ///< index into session_states; -1: none
    std::int64_t since = 0; ///< start of the phase
    std::int64_t born = 0;  ///< start of the current life
    std::int64_t lived = 0; ///< total time of earlier lives
    std::uint32_t lives = 0, rounds = 0;
    std::uint64_t samples = 0;
    std::int64_t loss = 0, loss_samples = 0; ///< sum over samples, in millionths of a nat
    std::array<std::uint64_t, 4> sent{};
  };
  struct unit {
    std::uint32_t hosts = 0; ///< number of seen hosts in this unit
    time_bins<4> time;       ///< time in each state
    time_bins<3> loss;       ///< sum over samples in millionths of a nat, its samples, all samples
    time_bins<2> bytes;      ///< bulk bytes, up and down
  };
  struct end {
    std::uint32_t host;
    std::int64_t time;
    std::string reason;
  };
  struct point {
    std::uint64_t number;
    std::int64_t started, ended;
    std::uint64_t members;
    std::uint8_t outcome;
    std::uint16_t reason;
  };
  struct member {
    std::uint32_t host;
    std::uint8_t outcome;
    std::uint16_t reason;
  };
  struct transfer_row {
    std::uint32_t from, to;
    std::uint16_t type = 0;
    std::uint64_t number = 0, bytes = 0;
    std::int64_t sent = 0, begun = 0, left = 0, arrives = 0;
    std::uint32_t why = 0;
    std::int64_t held = 0;
    bool cut = false;
  };
  struct kept_round {
    point what;
    std::uint64_t epoch = 0, samples = 0;
    std::string group;
    bool first_of_two = false;
    std::vector<member> members;
    std::optional<std::string> transfers; ///< JSON, made on first use
  };
  struct attempt {
    std::int64_t first = 0, last = 0;
    std::uint64_t count = 0;
  };
  struct fault_span {
    std::int64_t begin = 0, end = -1;
    std::uint64_t number = 0, hosts = 0;
    std::string action;
    std::vector<std::string> names;
  };
  /// Interns words: maps words to numbers and back.
  struct word_list {
    std::vector<std::string> words;
    std::map<std::string, std::uint32_t, std::less<>> numbers;
    std::uint32_t of(std::string_view word);
  };

  /// A host at the time of an event. Advances the view to this time and holds the guard.
  struct seen_host;

  mutable std::mutex guard;
  std::string run_yaml, summary_json, run_state = "running";
  std::vector<std::string> notes;
  run_facts facts;
  std::filesystem::path pictures; ///< folder of what the model drew; empty: none
  std::optional<std::vector<node>> nodes;

  std::vector<group> groups;
  std::map<std::string, std::uint32_t, std::less<>> group_by_name;
  std::uint32_t named_hosts = 0;   ///< number of hosts in groups; other hosts follow
  std::vector<std::string> others; ///< names of hosts outside groups
  std::map<std::string, std::uint32_t, std::less<>> other_by_name;
  std::vector<host> hosts;
  bool single = true; ///< each host is its own unit
  std::vector<unit> units;
  time_axis axis;
  std::vector<end> ends;
  std::uint64_t ends_left_out = 0;

  thinned_rows series, epochs;
  word_list words; ///< outcomes, reasons, types of messages, links
  std::uint64_t rounds_seen = 0;
  std::array<std::uint64_t, 4> by_outcome{};
  std::map<std::string, std::uint64_t, std::less<>> by_reason;
  std::vector<point> ok_points, bad_points;
  std::uint64_t ok_stride = 1, bad_stride = 1, ok_seen = 0, bad_seen = 0;
  std::deque<std::uint64_t> last_rounds, bad_rounds;
  std::set<std::pair<std::int64_t, std::uint64_t>> slow_rounds; ///< (duration, number)
  std::map<std::uint64_t, kept_round> kept; ///< key: number; rounds in one of the lists above
  std::map<std::string, std::vector<member>, std::less<>>
      open; ///< members that have ended; key: group
  std::deque<std::string> open_order;
  std::map<std::pair<std::uint64_t, std::string>, attempt> attempts;
  std::vector<transfer_row> transfers;
  std::uint64_t transfers_left_out = 0;
  std::vector<fault_span> faults;
  std::map<std::uint64_t, std::size_t> open_faults;
  std::uint64_t faults_left_out = 0;
  case_book cases;
  guard_book guards;
  stage_columns stages;
  expert_grid experts;
  std::map<std::pair<std::string, std::string>, std::array<std::uint64_t, 4>> region_bytes;
  /// Bulk bytes from region to region over time.
  std::map<std::pair<std::uint32_t, std::uint32_t>, time_bins<1>> flows;
  /// The newest arrivals and ends: time, host, reason of the end (empty: the host came).
  std::set<std::tuple<std::int64_t, std::uint32_t, std::string>> latest;
  bool traffic_known = false, traffic_wanted = false;
  std::uint64_t contributed_samples = 0;

  void reach(std::int64_t time);
  std::uint32_t host_of(std::string_view name);
  host& at(std::uint32_t index);
  std::uint32_t group_of(std::uint32_t index) const;
  std::string name_of(std::uint32_t index) const;
  unit& unit_of(std::uint32_t index);
  std::string name_of_unit(std::size_t index) const;
  void leave_phase(host& of, std::uint32_t index, std::int64_t time);
  void settle();
  void drop_unless_kept(std::uint64_t number);
  void keep_latest(std::int64_t time, std::uint32_t host, std::string_view reason);

  std::string run_text() const;
  std::string join_text() const;
  std::string nodes_text() const;
  std::string series_text() const;
  std::string epochs_text() const;
  std::string sessions_text() const;
  std::string participants_text() const;
  std::string rounds_text();
  std::string faults_text() const;
  std::string cases_text() const;
  std::string guard_text() const;
  std::string pictures_text() const;
  std::string stages_text() const;
  std::string experts_text() const;
  std::string traffic_text() const;
  std::string links_text() const;
  std::string flows_text() const;
  std::string growth_text() const;
  std::string latest_text() const;
  /// Returns the time at which the limit stopped the recording of transfers. Empty if all transfers
  /// are there.
  std::optional<std::int64_t> transfers_until() const;
  std::string transfers_of(const kept_round& round) const;
};

/// True if `outcome` is 'ok'.
inline bool is_ok(std::uint8_t outcome) {
  return outcome == 0;
}
/// A share from 0 to 1 as one of 62 characters.
char share_digit(double share);

inline constexpr std::array<std::string_view, 4> outcome_words{"ok", "partial", "split", "failed"};
std::uint8_t outcome_number(std::string_view word);

} // namespace shoal::scenarios
