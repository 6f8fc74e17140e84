// A node's records: under each key a dictionary by sub-key and owner. A newer record of the same
// owner replaces an older one (is_newer). No owner can take a sub-key from another one, because
// each owner has its own. The caller checks signatures.
//
// Limits: the store as a whole has limits, and each owner has some. So a member that fills its
// share keeps nobody else from storing. record_rules.hpp has the rules of each kind of key.
//
// Each change of a key gets an ascending sequence number, so that a reader asks only for later
// changes. Expired records are dropped without a number, because readers see the expiration
// themselves.
#pragma once

#include "actors/dht/messages.hpp"
#include "kernels/base/result.hpp"
#include "kernels/base/units.hpp"

#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace shoal::actors {

struct record_limits {
  std::size_t max_keys = std::size_t{1} << 16;
  std::size_t max_records_per_key = std::size_t{1} << 20;
  std::size_t max_records = std::size_t{1} << 22;
  std::size_t max_key_bytes = 256; ///< the limit of a key, and of a sub-key
  std::size_t max_value_bytes = 4096;
  duration max_lifetime = std::chrono::hours{24};
  // The limits of one owner.
  std::size_t max_keys_per_owner = 512;
  std::size_t max_records_per_owner = 1024;
  std::size_t max_records_per_owner_and_key = 256;
  std::size_t max_bytes_per_owner = std::size_t{1} << 20; ///< keys, sub-keys and values
};

class record_store {
public:
  explicit record_store(record_limits limits = {}) : limits_(limits) {}
  record_store(record_store&&) = default;
  record_store& operator=(record_store&&) = default;

  /// True if put() would keep the record. False if the store has it or a newer one, or if the
  /// record has expired. Errors: the record exceeds a limit.
  result<bool> wants(const std::string& key, const signed_record& what, std::int64_t utc) const {
    return wants(key, const_cast<record_store*>(this)->find_place(key, what.entry), what, utc);
  }
  /// Keeps the record if wants() is true and `refused()` is empty, and says whether it did.
  /// `refused()` is called last, because checking a signature takes the longest. Errors: as
  /// wants(), or what refused() says.
  template <class Refused>
  result<bool> put(const std::string& key, const shared<signed_record>& what, std::int64_t utc,
                   Refused refused) {
    const auto at = find_place(key, what->entry);
    auto wanted = wants(key, at, *what, utc);
    if (!wanted || !*wanted) return wanted;
    if (const std::string_view why = refused(); !why.empty()) return failure{std::string{why}};
    keep(key, at, what);
    return wanted;
  }
  /// Keeps a record whose signature was checked.
  result<bool> put(const std::string& key, const shared<signed_record>& what, std::int64_t utc) {
    return put(key, what, utc, [] { return std::string_view{}; });
  }

  struct changes {
    std::vector<shared<signed_record>> records; ///< including withdrawals
    std::uint64_t sequence = 0; ///< the next `after`; 0: there is nothing under the key
    bool more = false;
    /// Owners of whom the reader may have no record from this store yet.
    std::vector<key256> new_owners;
  };
  /// The changes under `key` after that number, oldest first, at most `most` records. Expired
  /// records are left out once drop_expired() was called.
  changes after(const std::string& key, std::uint64_t sequence, std::size_t most) const;
  /// Null if there is no such record.
  const signed_record* find(const std::string& key, const std::string& subkey,
                            const key256& owner) const;
  /// Calls f(const shared<signed_record>&) for all records under `key`, ascending by sub-key and
  /// owner.
  template <class F>
  void for_each(const std::string& key, F f) const {
    if (auto at = keys_.find(key); at != keys_.end())
      for (const auto& [name, kept] : at->second.records) f(kept.what);
  }

  void drop_expired(std::int64_t utc);
  void drop_key(const std::string& key);
  std::vector<std::string> keys() const;
  bool has_key(const std::string& key) const { return keys_.contains(key); }
  std::size_t size() const noexcept { return by_expiry_.size(); }
  bool has_records_of(const key256& owner) const { return owners_.contains(owner); }

  /// The time of the last store under the key.
  duration touched(const std::string& key) const;
  void touch(const std::string& key, duration now);

private:
  /// When to check whether a record has expired, and its sequence number when it was filed. A
  /// renewed record lives longer. It is not filed again at each renewal.
  using expiry = std::pair<std::int64_t, std::uint64_t>;
  struct kept;
  using in_order = std::list<const kept*>; // records of one key, ascending by number
  struct kept {
    shared<signed_record> what;
    std::uint64_t sequence = 0;
    std::uint64_t first = 0; // the sequence number of the first version
    expiry looked_at;        // the record's key in `by_expiry_`
    in_order::iterator listed;
  };
  struct record_name {
    std::string subkey;
    key256 owner;
    auto operator<=>(const record_name&) const = default;
  };
  struct hash_of_key {
    // A key is as good as random, and the swarm's moderator has admitted each.
    std::size_t operator()(const key256& key) const noexcept { return key.a; }
  };
  template <class T>
  using by_owner = std::unordered_map<key256, T, hash_of_key>; // never iterated
  struct share {
    std::size_t records = 0;
    const record_name* only = nullptr; // set under keys with one record an owner
  };
  struct dictionary {
    std::map<record_name, kept> records;
    by_owner<share> owners;
    in_order by_sequence;
    duration touched{};
  };
  struct usage {
    std::size_t keys = 0, records = 0, bytes = 0;
  };
  struct place {
    dictionary* in = nullptr;  // null: nothing is under the key
    kept* old = nullptr;       // null: the owner has no record under the sub-key
    share* of_owner = nullptr; // the owner's records under the key; null: there are none
  };
  struct names { // pointers into `keys_`
    const std::string* key = nullptr;
    const record_name* name = nullptr;
  };
  place find_place(const std::string& key, const record& entry);
  result<bool> wants(const std::string& key, const place& at, const signed_record& what,
                     std::int64_t utc) const;
  void keep(const std::string& key, place at, const shared<signed_record>& what);
  void look_at(kept& one, const expiry& when);
  void remove(const std::string& key, const record_name& name);
  void forget(const std::string& key, const dictionary& in, const kept& one);
  static std::size_t bytes_of(const std::string& key, const record& entry) {
    return key.size() + entry.subkey.size() + entry.value.size();
  }

  record_limits limits_;
  std::uint64_t next_sequence_ = 1;
  std::map<std::string, dictionary> keys_;
  std::map<expiry, names> by_expiry_; // one entry for each record
  by_owner<usage> owners_;
};

} // namespace shoal::actors
