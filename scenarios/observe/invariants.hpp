// The statements that must be true of every run (docs/design.md, section 5). Observers outside the
// actors check them in every build. The names of rule_names are those of summary.json.
#pragma once

#include "actors/ids.hpp"
#include "scenarios/observe/invariant.hpp"
#include "scenarios/observe/progress_checks.hpp"
#include "scenarios/observe/round_checks.hpp"
#include "scenarios/observe/rounds.hpp"
#include "scenarios/observe/sample_book.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace shoal::actors {
class observation;
} // namespace shoal::actors

namespace shoal::scenarios {

enum class invariant_rule : std::uint8_t {
  same_bits, ///< round_checks.hpp
  denominator,
  mass_conserved,
  samples_counted, ///< sample_book.hpp
  epoch_monotonic, ///< progress_checks.hpp
  staleness,
  state_lineage,
  records_live,      ///< no DHT node answers a reader with a record that it knows to have expired
  no_bypass,         ///< no message crossed hosts without the network
  requests_end,      ///< every request had its reply, time-out or down
  no_leaks,          ///< every actor, flow and timer ends when its purpose does
  no_honest_accused, ///< no honest host says of another one that it broke the protocol
};

inline constexpr std::array<std::string_view, 12> rule_names{
    "same_bits",       "denominator",  "mass_conserved", "samples_counted",
    "epoch_monotonic", "staleness",    "state_lineage",  "records_live",
    "no_bypass",       "requests_end", "no_leaks",       "no_honest_accused"};

/// Facts that the owner of the world counts after the run.
struct leak_facts {
  std::uint64_t messages = 0;        ///< messages delivered between hosts
  std::uint64_t bypassed = 0;        ///< netem::fabric::bypassed()
  std::uint64_t requests = 0;        ///< requests that were checked
  std::uint64_t requests_open = 0;   ///< requests that never ended
  std::uint64_t actors_alive = 0;    ///< actors alive on all hosts
  std::uint64_t actors_expected = 0; ///< number of actors in the roles of the living hosts
  std::uint64_t flows_of_dead_hosts = 0;
  std::uint64_t actors_of_dead_hosts = 0;
};

struct invariant_options {
  duration lease_time = std::chrono::seconds(60);
  duration settle_time = std::chrono::seconds(30);
  duration staleness_allowed = std::chrono::seconds(150);
  std::uint64_t max_epoch_difference = 1;
  duration longest_cut{};                                      ///< see progress_options
  bool one_branch = false, has_stages = false;                 ///< see progress_options
  bool has_experts = false;                                    ///< the same
  bool weights_are_samples = true, computes_meanwhile = false; ///< see sample_book_options
  bool donors_may_lie = false;                                 ///< see progress_options
  bool commits_may_lie = false;                                ///< see sample_book_options
  mass_options mass;
  std::function<std::string(actors::peer_id)> name_of;
  /// False for hosts whose conduct is an attack. Empty: all are honest.
  std::function<bool(const std::string& host)> honest;
  bool takeovers = false; ///< the shard has replicas (sample_book_options)
  /// In local view the rules that need several members (same_bits, denominator, mass_conserved,
  /// staleness) are neither judged nor counted.
  observed_view view = observed_view::whole;
};

class invariants {
public:
  explicit invariants(invariant_options options);
  invariants(const invariants&) = delete;

  void on_started(duration time, actors::peer_id peer);
  /// A peer was killed, or left of its own accord.
  void on_left(duration time, actors::peer_id peer);
  void on_observation(duration time, actors::peer_id peer, const actors::observation& what);
  void on_round(const swarm_round& what);
  /// A fault begins that keeps hosts from hearing of others.
  void cut(duration time) { progress_.cut(time); }
  /// The run ends: peers are told to leave.
  void ending(duration time) { progress_.ending(time); }
  void advance(duration time) { progress_.advance(time); }
  /// Checks what can only be judged at the end. Requires: round_book::finish() was called.
  /// `leading`: the state that the run ends with, if known.
  void finish(duration time, const leak_facts& facts,
              const std::optional<actors::state_id>& leading = {});

  const invariant& of(invariant_rule which) const { return all_[static_cast<std::size_t>(which)]; }
  const std::array<invariant, rule_names.size()>& all() const noexcept { return all_; }
  std::uint64_t violations() const noexcept {
    std::uint64_t out = 0;
    for (const invariant& one : all_) out += one.violated;
    return out;
  }
  std::size_t in_sync() const noexcept { return progress_.in_sync(); }
  std::uint64_t highest_epoch() const noexcept { return progress_.highest_epoch(); }

private:
  invariant& at(invariant_rule which) { return all_[static_cast<std::size_t>(which)]; }
  bool honest(actors::peer_id peer) const { return !mass_.honest || mass_.honest(peer); }

  std::array<invariant, rule_names.size()> all_;
  mass_options mass_; // with the honest peers
  observed_view view_;
  sample_book samples_;
  progress_checks progress_;
  std::unordered_map<actors::peer_id, std::optional<duration>> left_; // never iterated
};

} // namespace shoal::scenarios
