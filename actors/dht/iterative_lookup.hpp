// Finding the nodes nearest to a point: ask the nearest known, learn of nearer ones, ask those. At
// most alpha questions are open at once; one that takes long is not waited for, but may still be
// answered.
//
// Ends when the `wanted` nearest that are neither lost nor slow have answered, or nobody else is
// left to ask. The slow are waited for if nobody has answered at all; or, where values are wanted,
// none of the `wanted` nearest that are not lost: it is they who have them, and who answers in
// their place knows nothing. A plain state machine: whoever owns it sends the questions and keeps
// the time.
#pragma once

#include "actors/dht/messages.hpp"

#include <map>
#include <optional>
#include <vector>

namespace shoal::actors {

class iterative_lookup {
public:
  iterative_lookup(const node_id& target, std::size_t wanted, std::size_t alpha,
                   bool values = false, std::size_t most_candidates = 64)
      : target_(target), wanted_(wanted), alpha_(alpha), most_candidates_(most_candidates),
        values_(values) {}

  const node_id& target() const noexcept { return target_; }

  /// Where to begin.
  void start(const std::vector<contact>& known) { learn(known, 1); }
  /// Whom to ask now; nobody if enough are being asked or the look-up is over.
  std::optional<contact> next();
  /// What `from` said of others. Those from whom nothing was asked say nothing.
  void heard(const node_id& from, const std::vector<contact>& nearer);
  void answered(const node_id& who) { set(who, state::answered); }
  void failed(const node_id& who) { set(who, state::failed); }
  void slow(const node_id& who);

  bool done() const;
  /// The nearest that answered, nearest first, at most `count`.
  std::vector<contact> nearest(std::size_t count) const;
  /// The nearest that answered or still may, nearest first, at most `count`.
  std::vector<contact> nearest_living(std::size_t count) const;
  /// How many nodes after one another had to be asked to hear of the nearest that answered; 0: none
  /// did.
  unsigned hops() const;
  std::size_t asked() const noexcept { return asked_; }

private:
  enum class state { fresh, asked, slow, answered, failed };
  struct candidate {
    contact who;
    unsigned depth = 1;
    iterative_lookup::state state = state::fresh;
  };
  void learn(const std::vector<contact>& known, unsigned depth);
  void set(const node_id& who, state to);
  candidate* find(const node_id& who);

  node_id target_;
  std::size_t wanted_, alpha_, most_candidates_, asked_ = 0;
  bool values_;
  std::map<node_id, candidate> candidates_; // by distance
};

} // namespace shoal::actors
