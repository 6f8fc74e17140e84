// Whom a node knows: for each length of the prefix that an id shares with ours a bucket of at most
// k contacts, those heard of longest ago first, and some to replace them. A contact that answers is
// never pushed out by a newer one: who has been up for long will be (Maymounkov and Mazieres,
// section 2.1).
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
  /// We heard from `who` itself. `waits`: its bucket is full, and it is kept in case that one drops
  /// out. `refused`: it is we, or the id is known under another address.
  arrival seen(const contact& who, duration now);
  /// Who of that contact's bucket has been silent longest, if for at least `silence`.
  std::optional<contact> stalest(const node_id& beside, duration now, duration silence) const;
  /// Of all, at most `count` that have been silent for at least `silence`, those of longest ago
  /// first.
  std::vector<contact> silent(std::size_t count, duration now, duration silence) const;
  /// A request to it failed. It goes at once if another waits for its place, else after three
  /// failures.
  void failed(const node_id& who);
  /// It is known to be dead.
  void remove(const node_id& who);

  /// At most `count`, nearest first; those of whom `leave_out` says true are not among them.
  std::vector<contact> nearest(const node_id& target, std::size_t count,
                               const std::function<bool(const node_id&)>& leave_out = {}) const;
  bool contains(const node_id& who) const;
  std::size_t size() const noexcept { return size_; }
  /// How often somebody came or went.
  std::uint64_t changes() const noexcept { return changes_; }
  /// Prefix lengths of buckets that hold anybody, ascending.
  std::vector<unsigned> prefixes() const;

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
