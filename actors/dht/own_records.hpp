// The records of this node's own host: signed, renewed and withdrawn here. The owner of this object
// sends them to the replicas. A plain state machine. Times are UTC by the host's own clock, because
// a record ends when its owner's clock says.
//
// Steps: a published record is pending until it was sent to all replicas of its key. Meanwhile no
// replica gets it twice. The record is pending again when the replicas change, when one of them
// fails, and `republish` after the last write.
#pragma once

#include "actors/dht/messages.hpp"
#include "actors/dht/signed_record.hpp"
#include "kernels/base/shared.hpp"
#include "kernels/base/units.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace shoal::actors {

class own_records {
public:
  /// `signatures` may be null.
  own_records(const host& signer, duration max_lifetime,
              std::shared_ptr<signature_cache> signatures)
      : signer_(signer), max_lifetime_(max_lifetime), signatures_(std::move(signatures)) {}

  /// Signs a record, which replaces the one under its sub-key.
  void publish(const std::string& key, record entry, bool withdrawn, std::int64_t utc_ns);
  /// The expiration that a withdrawal of the sub-key needs; 0 if no live record exists.
  std::int64_t withdrawal_until(const std::string& key, const std::string& subkey,
                                std::int64_t utc_ns) const;

  bool has(const std::string& key) const { return records_.contains(key); }
  bool has_pending(const std::string& key) const;
  /// Marks all records of the key as pending. True if there are any.
  bool mark_pending(const std::string& key);
  std::vector<std::string> keys() const;

  /// The pending records of the key that `member` was not sent yet, ascending by sub-key. They
  /// count as sent now.
  std::vector<shared<signed_record>> take_unsent(const std::string& key, const node_id& member,
                                                 std::int64_t utc_ns);
  /// The pending records of the key were sent to all replicas.
  void written(const std::string& key, duration now);
  /// Records of the key that have not expired, at most `most`.
  std::vector<shared<signed_record>> living(const std::string& key, std::int64_t utc_ns,
                                            std::size_t most) const;
  /// Calls f(const shared<signed_record>&) for all records of the key, ascending by sub-key.
  template <class F>
  void for_each(const std::string& key, F f) const {
    if (const auto found = records_.find(key); found != records_.end())
      for (const auto& [subkey, one] : found->second) f(one.what);
  }

  /// Withdrawals to publish, by key. Each is for an expired record of which a replica may hold an
  /// older version that ends later. Such a version exists if the host's clock was ahead when it was
  /// made.
  std::vector<std::pair<std::string, record>> outlived(std::int64_t utc_ns) const;
  void drop_expired(std::int64_t utc_ns);
  /// Marks records as pending that were written `republish` ago. Returns the key of each,
  /// ascending.
  std::vector<std::string> renew(duration now, duration republish);

private:
  struct own_record {
    shared<signed_record> what;
    bool pending = true;
    std::set<node_id> sent_to; // the replicas that got it while it was pending
    duration written{};
    std::int64_t longest = 0; // the latest expiration of all versions that a replica may hold
  };
  using dictionary = std::map<std::string, own_record>;

  const host& signer_;
  duration max_lifetime_;
  std::shared_ptr<signature_cache> signatures_;
  std::uint64_t last_version_ = 0;
  std::map<std::string, dictionary> records_;
};

} // namespace shoal::actors
