// The fault engine carries out the scenario's `faults:`. It decides when a fault strikes (a time, a
// period or a probe) and which hosts (a glob, regions and a mode). It also decides when the fault
// ends. scenarios/runner/effects.hpp applies the effects to hosts.
// Each fault draws from its own random stream "fault", so that other faults and hosts do not change
// the draws. If a fault strikes a host again while the fault lasts, the later end holds.
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
  bool peer = true; ///< false: a shard, which only its name selects (selects_shard)
};

/// Notification that a fault began or ended.
struct fault_note {
  std::size_t fault = 0; ///< index in `faults:`
  fault_kind kind{};
  bool begins = true;
  std::vector<std::string> hosts; ///< hosts that the fault struck
};

class fault_engine {
public:
  struct hooks {
    std::function<void(netem::machine_index)> start; ///< boots the peer or shard of a machine
    std::function<void(const fault_note&)> note;     ///< may be empty
  };

  fault_engine(world& in, effects& on, std::vector<fault> faults, std::vector<fault_target> targets,
               run_seed seed, hooks what);

  void schedule();
  void reached(netem::host_index host, std::string_view point);
  /// Ends all lasting faults. No fault strikes afterwards.
  void end();

  /// Number of strikes on hosts so far. Repeated strikes on a host all count.
  std::uint64_t struck() const noexcept { return struck_; }

private:
  struct lasting {
    effects::number effect = 0;
    std::uint64_t number = 0; // number of the latest strike
  };
  struct state {
    fault what;
    std::vector<std::size_t> selected; // indices into targets_
    rng draws;
    std::uint64_t reached = 0;            // number of times that selected hosts reached `on`
    std::map<std::size_t, lasting> lasts; // key: target, or `everybody` for partitions
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
  /// Several threads reach probes. The engine starts and kills hosts under this lock. This cannot
  /// reach a probe recursively: actors run later, and callbacks of the fabric do not call the
  /// engine.
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
