// Records as a node keeps them: a dictionary of sub-keys under each key. Of two records of one
// owner the newer one stays (is_newer); another owner cannot replace a record that lives. How a
// signature is checked is up to whoever puts records here.
//
// Each change of a key gets a number, ascending, so that a reader that has all up to one number
// asks only for what came after it. Expired records are dropped without a number: readers see for
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
  std::size_t max_key_bytes = 256; ///< of a key, and of a sub-key
  std::size_t max_value_bytes = 4096;
  duration max_lifetime = std::chrono::hours{24};
};

class record_store {
public:
  explicit record_store(record_limits limits = {}) : limits_(limits) {}
  record_store(record_store&&) = default;
  record_store& operator=(record_store&&) = default;

  /// Whether put() would keep it: false if we have it or a newer one, or it has expired.
  /// Errors: it exceeds a limit, or the sub-key is another owner's.
  result<bool> wants(const std::string& key, const signed_record& what, std::int64_t utc) const {
    return wants(key, const_cast<record_store*>(this)->find_place(key, what.entry.subkey), what,
                 utc);
  }
  /// Keeps it if it is wanted and `genuine()`, which is asked last, because a signature takes the
  /// longest to check. Says whether. Errors: as wants(), or it is not genuine.
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
  /// One whose signature was checked.
  result<bool> put(const std::string& key, const shared<signed_record>& what, std::int64_t utc) {
    return put(key, what, utc, [] { return true; });
  }

  struct changes {
    std::vector<shared<signed_record>> records; ///< withdrawals among them
    std::uint64_t sequence = 0; ///< ask from here next time; 0: there is nothing under the key
    bool more = false;
  };
  /// What changed under `key` after that number, oldest first, at most `most` records. Those that
  /// expired are not among them if drop_expired() was called.
  changes after(const std::string& key, std::uint64_t sequence, std::size_t most) const;
  /// Null if there is nothing.
  const signed_record* find(const std::string& key, const std::string& subkey) const;
  /// All under `key`, ascending by sub-key: f(const shared<signed_record>&).
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

  /// When somebody last stored anything under the key.
  duration touched(const std::string& key) const;
  void touch(const std::string& key, duration now);

private:
  /// When to look whether a record has expired, and the number that it had then. One that is
  /// renewed lives longer, so it is not moved each time.
  using expiry = std::pair<std::int64_t, std::uint64_t>;
  struct kept;
  using in_order = std::list<const kept*>; // of one key, ascending by number
  struct kept {
    shared<signed_record> what;
    std::uint64_t sequence = 0;
    expiry looked_at; // its key in `by_expiry_`
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
  struct names { // in `keys_`
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
  std::map<expiry, names> by_expiry_; // each record once
};

} // namespace shoal::actors
