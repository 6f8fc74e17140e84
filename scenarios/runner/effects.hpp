// Combines the effects of faults on hosts. Each effect is a modifier with a number. Undoing a
// modifier keeps the other ones in force. Several effects on one host combine as follows:
//   - rates: the lowest rate holds, factors of the line's own rate included;
//   - delays add, and losses combine as on lines in series;
//   - a host is paused while any pause lasts;
//   - two hosts are cut off while any cut lasts;
//   - clock offsets add.
// Thread safety: any thread may call any function.
#pragma once

#include "netem/fabric.hpp"
#include "scenarios/runner/world.hpp"
#include "scenarios/schema/fault.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace shoal::scenarios {

/// A host's line without faults.
struct line_state {
  data_rate up, down;
  netem::path_quality quality;
};

class effects {
public:
  using number = std::uint64_t;

  explicit effects(world& in) : world_(in) {}

  /// Registers the line of a machine. Requires: the machine has no effects yet.
  void add_line(netem::machine_index machine, const line_state& line) { lines_[machine] = line; }
  /// Replaces the line of a machine. Effects of faults stay in force.
  void set_line(netem::machine_index machine, const line_state& line);
  line_state line_of(netem::machine_index machine) const;

  number throttle(netem::machine_index machine, line_part part, data_rate rate, double factor);
  number impair(netem::machine_index machine, netem::traffic_direction direction,
                const netem::path_quality& how, data_rate rate);
  number cut(netem::cut what);
  number pause(netem::machine_index machine);
  number clock(netem::machine_index machine, duration offset, double drift);

  /// Undoes an effect. Does nothing if the effect does not exist.
  void undo(number which);

private:
  enum class kind { line, cut, pause, clock };
  struct modifier {
    kind what;
    netem::machine_index machine{};
    // line
    bool up = false, down = false;
    double rate = 0, factor = 1; // rate 0: no limit
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
  std::map<netem::machine_index, std::vector<number>> of_machine_; // modifiers, oldest first
  std::map<number, modifier> modifiers_;
  number next_ = 1;
};

} // namespace shoal::scenarios
