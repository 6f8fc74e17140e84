#include "scenarios/observe/observers/all.hpp"

namespace shoal::scenarios {

namespace {

std::vector<make_observer>& list() {
  // The order matters. The invariants judge an observation before its round can become final. The
  // listener hears of a member's end before it hears of the round's. The log has a round's line
  // before the line of the observation that made the round final.
  static std::vector<make_observer> all{
      observing::history,   observing::checks,        observing::listener,
      observing::rounds,    observing::peers,         observing::phases,
      observing::losses,    observing::reachability,  observing::days,
      observing::incidents, observing::network,       observing::metric_rows,
      observing::traffic,   observing::contributions, observing::events,
      observing::transfers, observing::epochs,        observing::accusations,
      observing::cases,     observing::security,      observing::guard_rounds,
      observing::experts,
  };
  return all;
}

} // namespace

const std::vector<make_observer>& observers() {
  return list();
}

void add_observer(make_observer make) {
  list().push_back(make);
}

} // namespace shoal::scenarios
