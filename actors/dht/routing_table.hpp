// The contacts of a node, in buckets by the length of the prefix that an id shares with the node's
// own. A member has one entry at most, so one certificate buys one place. A bucket has at most k
// contacts, the least recently heard first, and a few contacts that wait for a place. A newer
// contact never replaces one that answers, because a node that has been up for long is likely to
// stay up. Source: Maymounkov and Mazieres (as in node_id.hpp), section 2.1.
#pragma once

#include "actors/dht/messages.hpp"
#include "kernels/base/units.hpp"

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace shoal::actors {

class routing_table {
public:
  explicit routing_table(const node_id& self, std::size_t bucket_size = 20)
      : self_(self), bucket_size_(bucket_size) {}

  enum class arrival { added, known, waits, refused };
  /// Takes a message from a contact itself. `waits`: the bucket is full, and the contact waits for
  /// a place. `refused`: the contact is this node, or another node of its member. A member that
  /// speaks from another incarnation has restarted: the contact replaces its earlier one and counts
  /// as added. From another actor of the same incarnation it replaces its address only. Requires:
  /// the id follows from the address, and the address sent the message.
  arrival seen(const contact& who, duration now);
  /// The contact of the same bucket as `beside` that was silent longest, if for at least `silence`.
  std::optional<contact> stalest(const node_id& beside, duration now, duration silence) const;
  /// At most `count` contacts that were silent for at least `silence`, the longest silence first.
  std::vector<contact> silent(std::size_t count, duration now, duration silence) const;
  /// A request to the contact failed. The contact is dropped at once if another waits for its
  /// place, else after three failures.
  void failed(const node_id& who);
  /// Drops a contact that is known to be dead.
  void remove(const node_id& who);

  /// At most `count` contacts, nearest first, without those for which `leave_out` is true.
  std::vector<contact> nearest(const node_id& target, std::size_t count,
                               const std::function<bool(const contact&)>& leave_out = {}) const;
  /// The contact of that member; empty if there is none.
  std::optional<contact> of_member(const member_id& member) const;
  bool contains(const node_id& who) const;
  std::size_t size() const noexcept { return size_; }
  /// The number of additions and removals so far.
  std::uint64_t changes() const noexcept { return changes_; }
  /// The prefix lengths of buckets that are not empty, ascending.
  std::vector<unsigned> prefixes() const;
  /// The prefix lengths of empty buckets before the last one, ascending.
  std::vector<unsigned> gaps() const;

private:
  struct entry {
    contact who;
    duration heard{};
    unsigned failures = 0;
  };
  struct bucket {
    std::deque<entry> members;   // least recently heard of first
    std::deque<contact> waiting; // newest last
  };

  node_id self_;
  std::size_t bucket_size_;
  std::size_t size_ = 0;
  std::uint64_t changes_ = 0;
  std::map<unsigned, bucket> buckets_;
};

} // namespace shoal::actors
