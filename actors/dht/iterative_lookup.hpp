// Finds the nodes nearest to a point: asks the nearest known nodes, learns of nearer ones, and asks
// those. At most `alpha` questions are open at once. A slow node no longer counts as open, and may
// still answer.
//
// Ends when the `wanted` nearest nodes that are neither failed nor slow have answered, or when no
// candidate is left. The look-up waits for slow nodes if no node has answered at all. With
// `values`, it also waits until one of the `wanted` nearest nodes that have not failed has
// answered: those nodes hold the records.
//
// A plain state machine: its owner sends the questions and keeps the time.
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

  /// Begins with these nodes.
  void start(const std::vector<contact>& known) { learn(known, 1); }
  /// The node to ask now. Empty if enough nodes are being asked or the look-up is over.
  std::optional<contact> next();
  /// `from` names other nodes. Nodes that were not asked are ignored.
  void heard(const node_id& from, const std::vector<contact>& nearer);
  void answered(const node_id& who) { set(who, state::answered); }
  void failed(const node_id& who) { set(who, state::failed); }
  void slow(const node_id& who);

  bool done() const;
  /// At most `count` of the nodes that answered, nearest first.
  std::vector<contact> nearest(std::size_t count) const;
  /// At most `count` of the nodes that answered or still may, nearest first.
  std::vector<contact> nearest_living(std::size_t count) const;
  /// The length of the chain of questions that led to the nearest node that answered; 0 if none
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
