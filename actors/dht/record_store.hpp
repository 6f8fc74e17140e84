// A node's records: a dictionary of sub-keys under each key. A newer record of the same owner
// replaces an older one (is_newer). A live record cannot be replaced by another owner. The caller
// checks signatures.
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
};

class record_store {
public:
  explicit record_store(record_limits limits = {}) : limits_(limits) {}
  record_store(record_store&&) = default;
  record_store& operator=(record_store&&) = default;

  /// True if put() would keep the record. False if the store has it or a newer one, or if the
  /// record has expired. Errors: the record exceeds a limit, or another owner has the sub-key.
  result<bool> wants(const std::string& key, const signed_record& what, std::int64_t utc) const {
    return wants(key, const_cast<record_store*>(this)->find_place(key, what.entry.subkey), what,
                 utc);
  }
  /// Keeps the record if wants() and `genuine()` are true, and says whether it did. `genuine()` is
  /// called last, because checking a signature takes the longest. Errors: as wants(), or the record
  /// is not genuine.
  template <class Genuine>
  result<bool> put(const std::string& key, const shared<signed_record>& what, std::int64_t utc,
                   Genuine genuine) {
    const auto at = find_place(key, what->entry.subkey);
    auto wanted = wants(key, at, *what, utc);
    if (!wanted || !*wanted) return wanted;
    if (!genuine()) return failure{"the signature is not its owner's"};
    keep(key, at, what);
    return wanted;
  }
  /// Keeps a record whose signature was checked.
  result<bool> put(const std::string& key, const shared<signed_record>& what, std::int64_t utc) {
    return put(key, what, utc, [] { return true; });
  }

  struct changes {
    std::vector<shared<signed_record>> records; ///< including withdrawals
    std::uint64_t sequence = 0; ///< the next `after`; 0: there is nothing under the key
    bool more = false;
  };
  /// The changes under `key` after that number, oldest first, at most `most` records. Expired
  /// records are left out once drop_expired() was called.
  changes after(const std::string& key, std::uint64_t sequence, std::size_t most) const;
  /// Null if there is no such record.
  const signed_record* find(const std::string& key, const std::string& subkey) const;
  /// Calls f(const shared<signed_record>&) for all records under `key`, ascending by sub-key.
  template <class F>
  void for_each(const std::string& key, F f) const {
    if (auto at = keys_.find(key); at != keys_.end())
      for (const auto& [subkey, kept] : at->second.records) f(kept.what);
  }

  void drop_expired(std::int64_t utc);
  void drop_key(const std::string& key);
  std::vector<std::string> keys() const;
  bool has_key(const std::string& key) const { return keys_.contains(key); }
  std::size_t size() const noexcept { return by_expiry_.size(); }

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
    expiry looked_at; // the record's key in `by_expiry_`
    in_order::iterator listed;
  };
  struct dictionary {
    std::map<std::string, kept> records;
    in_order by_sequence;
    duration touched{};
  };
  struct place {
    dictionary* in = nullptr; // null: nothing is under the key
    kept* old = nullptr;      // null: the sub-key is free
  };
  struct names { // pointers into `keys_`
    const std::string* key = nullptr;
    const std::string* subkey = nullptr;
  };
  place find_place(const std::string& key, const std::string& subkey);
  result<bool> wants(const std::string& key, const place& at, const signed_record& what,
                     std::int64_t utc) const;
  void keep(const std::string& key, place at, const shared<signed_record>& what);
  void look_at(kept& one, const expiry& when);
  void remove(const std::string& key, const std::string& subkey);

  record_limits limits_;
  std::uint64_t next_sequence_ = 1;
  std::map<std::string, dictionary> keys_;
  std::map<expiry, names> by_expiry_; // one entry for each record
};

} // namespace shoal::actors
