// What faults do to hosts while they last, put together. Each effect is a modifier with a number;
// undoing it brings back what the others leave. Where several meet on one host: the lowest rate
// holds, factors of the line's own rate included; delays add and losses combine, as of lines one
// after the other; a host is paused as long as any pause lasts; two hosts are cut off as long as
// any cut does; clocks are off by the sum. Thread safety: all calls from any thread.
#pragma once

#include "netem/fabric.hpp"
#include "scenarios/runner/world.hpp"
#include "scenarios/schema/fault.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace shoal::scenarios {

/// A host's line as it is without faults.
struct line_state {
  data_rate up, down;
  netem::path_quality quality;
};

class effects {
public:
  using number = std::uint64_t;

  explicit effects(world& in) : world_(in) {}

  /// How the line of a machine was built. Requires: before any effect on it.
  void add_line(netem::machine_index machine, const line_state& line) { lines_[machine] = line; }
  /// The line of a machine from now on; what faults do to it stays.
  void set_line(netem::machine_index machine, const line_state& line);
  line_state line_of(netem::machine_index machine) const;

  number throttle(netem::machine_index machine, line_part part, data_rate rate, double factor);
  number impair(netem::machine_index machine, netem::traffic_direction direction,
                const netem::path_quality& how, data_rate rate);
  number cut(netem::cut what);
  number pause(netem::machine_index machine);
  number clock(netem::machine_index machine, duration offset, double drift);

  /// Undoes one; does nothing if it is not there.
  void undo(number which);

private:
  enum class kind { line, cut, pause, clock };
  struct modifier {
    kind what;
    netem::machine_index machine{};
    // line
    bool up = false, down = false;
    double rate = 0, factor = 1; // 0: no limit
    netem::path_quality quality{};
    // cut
    std::uint64_t cut{};
    // pause
    netem::host_index host{};
    // clock
    duration offset{}, since{};
    double drift = 0;
  };

  number add(modifier what);
  void apply_line(netem::machine_index machine);
  void apply_clock(netem::machine_index machine);

  world& world_;
  mutable std::mutex mutex_;
  std::map<netem::machine_index, line_state> lines_;
  std::map<netem::machine_index, std::vector<number>> of_machine_; // in order
  std::map<number, modifier> modifiers_;
  number next_ = 1;
};

} // namespace shoal::scenarios
