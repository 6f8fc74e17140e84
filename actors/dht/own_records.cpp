#include "actors/dht/own_records.hpp"

#include "actors/dht/record_rules.hpp"

#include <algorithm>
#include <iterator>

namespace shoal::actors {

void own_records::publish(const std::string& key, record entry, bool withdrawn,
                          std::int64_t utc_ns) {
  const auto subkey = entry.subkey;
  last_version_ = std::max(last_version_ + 1, static_cast<std::uint64_t>(utc_ns));
  auto& records = records_[key];
  const auto before = records.find(subkey);
  auto longest = entry.expires_utc_ns;
  // A replica keeps a record for `max_lifetime_` at most, so an older version is gone by then.
  if (before != records.end())
    longest = std::max(
        longest, std::min(before->second.longest,
                          utc_ns + std::min(max_lifetime_, rule_of(key).max_lifetime).count()));
  auto made =
      sign_record(signer_, key, std::move(entry), last_version_, withdrawn, signatures_.get());
  records.insert_or_assign(subkey, own_record{std::move(made), true, {}, {}, longest});
}

std::int64_t own_records::withdrawal_until(const std::string& key, const std::string& subkey,
                                           std::int64_t utc_ns) const {
  const auto records = records_.find(key);
  if (records == records_.end()) return 0;
  const auto found = records->second.find(subkey);
  if (found == records->second.end() || found->second.what->withdrawn != 0) return 0;
  return found->second.longest > utc_ns ? found->second.longest : 0;
}

bool own_records::has_pending(const std::string& key) const {
  const auto found = records_.find(key);
  if (found == records_.end()) return false;
  return std::any_of(found->second.begin(), found->second.end(),
                     [](const auto& e) { return e.second.pending; });
}

bool own_records::mark_pending(const std::string& key) {
  const auto found = records_.find(key);
  if (found == records_.end()) return false;
  for (auto& [subkey, one] : found->second) one.pending = true;
  return true;
}

std::vector<std::string> own_records::keys() const {
  std::vector<std::string> out;
  out.reserve(records_.size());
  for (const auto& [key, records] : records_) out.push_back(key);
  return out;
}

std::vector<shared<signed_record>>
own_records::take_unsent(const std::string& key, const node_id& member, std::int64_t utc_ns) {
  std::vector<shared<signed_record>> out;
  const auto found = records_.find(key);
  if (found == records_.end()) return out;
  for (auto& [subkey, one] : found->second)
    if (one.pending && one.what->entry.expires_utc_ns > utc_ns && one.sent_to.insert(member).second)
      out.push_back(one.what);
  return out;
}

void own_records::written(const std::string& key, duration now) {
  const auto found = records_.find(key);
  if (found == records_.end()) return;
  for (auto& [subkey, one] : found->second) {
    if (!one.pending) continue;
    one.pending = false;
    one.sent_to.clear();
    one.written = now;
  }
}

std::vector<shared<signed_record>> own_records::living(const std::string& key, std::int64_t utc_ns,
                                                       std::size_t most) const {
  std::vector<shared<signed_record>> out;
  for_each(key, [&](const shared<signed_record>& what) {
    if (what->entry.expires_utc_ns > utc_ns && out.size() < most) out.push_back(what);
  });
  return out;
}

std::vector<std::pair<std::string, record>> own_records::outlived(std::int64_t utc_ns) const {
  std::vector<std::pair<std::string, record>> out;
  for (const auto& [key, records] : records_)
    for (const auto& [subkey, one] : records)
      if (one.what->entry.expires_utc_ns <= utc_ns && one.longest > utc_ns)
        out.push_back({key, {subkey, nullptr, {}, one.longest}});
  return out;
}

void own_records::drop_expired(std::int64_t utc_ns) {
  for (auto at = records_.begin(); at != records_.end();) {
    std::erase_if(at->second,
                  [&](const auto& e) { return e.second.what->entry.expires_utc_ns <= utc_ns; });
    at = at->second.empty() ? records_.erase(at) : std::next(at);
  }
}

std::vector<std::string> own_records::renew(duration now, duration republish) {
  std::vector<std::string> out;
  for (auto& [key, records] : records_)
    for (auto& [subkey, one] : records) {
      if (now - one.written < republish) continue;
      one.pending = true;
      out.push_back(key);
    }
  return out;
}

} // namespace shoal::actors
