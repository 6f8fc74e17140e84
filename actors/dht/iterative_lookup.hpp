// Finds the nodes nearest to a point: asks the nearest known nodes, learns of nearer ones, and asks
// those. At most `alpha` questions are open at once. A slow node no longer counts as open, and may
// still answer.
//
// Ends when the `wanted` nearest nodes that are neither failed nor slow have answered, or when no
// candidate is left. The look-up waits for slow nodes if no node has answered at all. With
// `values`, it also waits until one of the `wanted` nearest nodes that have not failed has
// answered: those nodes hold the records.
//
// Disjoint paths. The nodes known at the start are dealt to `paths` paths. A node that an answer
// names belongs to the path of that answer, and to no other. Each path has its own places and its
// own open questions, and goes on until wanted / paths nodes of its own have answered. So an
// answer that names only a liar's nodes, or only nodes that never answer, takes one path and leaves
// the others alone. A member counts once, however many of its nodes are named.
// Source: Baumgart and Mies, "S/Kademlia: A Practicable Approach Towards Secure Key-Based Routing",
// ICPADS 2007, section 4.4.
//
// A plain state machine: its owner sends the questions and keeps the time.
#pragma once

#include "actors/dht/messages.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <vector>

namespace shoal::actors {

class iterative_lookup {
public:
  iterative_lookup(const node_id& target, std::size_t wanted, std::size_t alpha,
                   bool values = false, std::size_t paths = 1, std::size_t most_candidates = 64)
      : target_(target), wanted_(wanted), alpha_(alpha), most_candidates_(most_candidates),
        values_(values), paths_(std::clamp<std::size_t>(paths, 1, most_paths)) {}

  static constexpr std::size_t most_paths = 4;
  /// A path asks at most so many nodes of one member: a liar may name dead ones beside the true
  /// one.
  static constexpr std::size_t most_of_member = 3;

  const node_id& target() const noexcept { return target_; }

  /// Begins with these nodes.
  void start(const std::vector<contact>& known);
  /// The node to ask now. Empty if enough nodes are being asked or the look-up is over.
  std::optional<contact> next();
  /// `from` names other nodes. Nodes that were not asked are ignored.
  void heard(const contact& from, const std::vector<contact>& nearer);
  void answered(const contact& who) { set(who, state::answered); }
  void failed(const contact& who) { set(who, state::failed); }
  void slow(const contact& who);

  bool done() const;
  /// At most `count` of the nodes that answered, nearest first, one of each member.
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
    std::size_t path = 0;
    iterative_lookup::state state = state::fresh;
  };
  void learn(const contact& who, unsigned depth, std::size_t path);
  void limit(std::size_t path);
  bool is_done(std::size_t path) const;
  /// The share of one path in a limit of the whole look-up, rounded up.
  std::size_t share_of(std::size_t limit) const { return (limit + paths_ - 1) / paths_; }
  std::size_t wanted_of_path() const { return std::max<std::size_t>(wanted_ / paths_, 1); }
  template <class Counts>
  std::vector<contact> nearest_where(std::size_t count, Counts counts) const;
  void set(const contact& who, state to);
  candidate* find(const contact& who);

  node_id target_;
  std::size_t wanted_, alpha_, most_candidates_, asked_ = 0;
  bool values_;
  std::size_t paths_, turn_ = 0;                   // the path that asks next
  std::map<contact::place, candidate> candidates_; // by distance and actor
};

} // namespace shoal::actors
