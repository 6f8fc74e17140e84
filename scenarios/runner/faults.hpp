// Carries out the scenario's `faults:`: when each one strikes (a time, again and again, a probe),
// whom (a glob, regions, a mode), and when it is over. What they do to hosts:
// scenarios/runner/effects.hpp. Draws come from the stream "fault" of each fault's number: more
// faults, or other hosts' doings, move none of them. A host that is struck again by the same fault
// while that lasts is struck until the later end.
#pragma once

#include "kernels/base/rng.hpp"
#include "netem/fabric.hpp"
#include "scenarios/runner/effects.hpp"
#include "scenarios/runner/world.hpp"
#include "scenarios/schema/scenario.hpp"

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// A machine that faults can select.
struct fault_target {
  netem::machine_index machine = 0;
  std::string name, region;
  bool peer = true; ///< others are selected by their name alone (selects_shard)
};

/// A fault began or ended.
struct fault_note {
  std::size_t fault = 0; ///< index in `faults:`
  fault_kind kind{};
  bool begins = true;
  std::vector<std::string> hosts; ///< struck
};

class fault_engine {
public:
  struct hooks {
    std::function<void(netem::machine_index)> start; ///< boots the peer or shard of a machine
    std::function<void(const fault_note&)> note;     ///< may be empty
  };

  fault_engine(world& in, effects& on, std::vector<fault> faults, std::vector<fault_target> targets,
               std::uint64_t seed, hooks what);

  void schedule();
  void reached(netem::host_index host, std::string_view point);
  /// Ends what lasts; nothing strikes any more.
  void end();

  /// Hosts that were struck so far, again and again counted.
  std::uint64_t struck() const noexcept { return struck_; }

private:
  struct lasting {
    effects::number effect = 0;
    std::uint64_t number = 0; // of its latest strike
  };
  struct state {
    fault what;
    std::vector<std::size_t> selected; // indices into targets_
    rng draws;
    std::uint64_t reached = 0;            // how often a selected host reached `on`
    std::map<std::size_t, lasting> lasts; // by target; of partitions under `everybody`
  };
  static constexpr std::size_t everybody = static_cast<std::size_t>(-1);

  bool matches(const fault& what, const fault_target& target) const;
  void due(std::size_t index);
  std::vector<std::size_t> choose(state& of);
  void strike(std::size_t index, std::vector<std::size_t> whom);
  void strike_one(std::size_t index, std::size_t whom);
  void partition(std::size_t index, const std::vector<std::size_t>& whom);
  void clog(std::size_t index, std::vector<std::size_t> whom);
  void keep(std::size_t index, std::size_t key, effects::number made, duration time);
  void over(std::size_t index, std::size_t key, std::uint64_t number);
  void tell(std::size_t index, bool begins, const std::vector<std::size_t>& whom);

  world& world_;
  effects& effects_;
  /// Probes are reached in several threads. Under this lock hosts start and die, and nobody there
  /// reaches a probe meanwhile: actors run later, and callbacks of the fabric do not call the
  /// faults.
  std::mutex mutex_;
  std::vector<fault_target> targets_;
  std::map<netem::machine_index, std::size_t> target_of_;
  std::vector<state> faults_;
  bool on_probes_ = false;
  std::uint64_t next_number_ = 1;
  hooks hooks_;
  bool ended_ = false;
  std::atomic<std::uint64_t> struck_{0};
};

} // namespace shoal::scenarios
