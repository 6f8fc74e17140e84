// The records that this node's own host stores: signed, renewed and withdrawn here, and sent to
// replicas by the owner of this object. A plain state machine; UTC is the host's own, because a
// record ends when the clock of its owner says.
//
// Steps: a published record is pending until all replicas of its key were sent it. While it is
// pending, nobody is sent it twice. It is pending again when the replicas change, when one of them
// fails, and `republish` after it was written last.
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
  /// `memo` may be null.
  own_records(identity signer, duration max_lifetime, std::shared_ptr<signature_memo> memo)
      : signer_(std::move(signer)), max_lifetime_(max_lifetime), memo_(std::move(memo)) {}

  /// Signs a record, which replaces what is under its sub-key.
  void publish(const std::string& key, record entry, bool withdrawn, std::int64_t utc_ns);
  /// The expiration that a withdrawal of the sub-key needs; 0 if there is nothing to withdraw.
  std::int64_t withdrawal_until(const std::string& key, const std::string& subkey,
                                std::int64_t utc_ns) const;

  bool has(const std::string& key) const { return records_.contains(key); }
  bool has_pending(const std::string& key) const;
  /// All records of the key are pending. True if there are any.
  bool mark_pending(const std::string& key);
  std::vector<std::string> keys() const;

  /// Pending records of the key that `member` was not sent yet, ascending by sub-key; from now on
  /// it was.
  std::vector<shared<signed_record>> take_unsent(const std::string& key, const node_id& member,
                                                 std::int64_t utc_ns);
  /// All replicas of the key were sent what is pending.
  void written(const std::string& key, duration now);
  /// Records of the key that have not expired, at most `most`.
  std::vector<shared<signed_record>> living(const std::string& key, std::int64_t utc_ns,
                                            std::size_t most) const;
  /// All records of the key, ascending by sub-key: f(const shared<signed_record>&).
  template <class F>
  void for_each(const std::string& key, F f) const {
    if (const auto found = records_.find(key); found != records_.end())
      for (const auto& [subkey, one] : found->second) f(one.what);
  }

  /// Withdrawals to publish, by key: of records that are over, and that somebody may still hold in
  /// an older version that ends later, as after the host's clock was ahead.
  std::vector<std::pair<std::string, record>> outlived(std::int64_t utc_ns) const;
  void drop_expired(std::int64_t utc_ns);
  /// Records that were written `republish` ago are pending. The key of each of them, ascending.
  std::vector<std::string> renew(duration now, duration republish);

private:
  struct own_record {
    shared<signed_record> what;
    bool pending = true;
    std::set<node_id> sent_to; // while it is pending
    duration written{};
    std::int64_t longest = 0; // the latest expiration of all versions that somebody may still hold
  };
  using dictionary = std::map<std::string, own_record>;

  identity signer_;
  duration max_lifetime_;
  std::shared_ptr<signature_memo> memo_;
  std::uint64_t last_version_ = 0;
  std::map<std::string, dictionary> records_;
};

} // namespace shoal::actors
