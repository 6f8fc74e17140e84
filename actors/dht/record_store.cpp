#include "actors/dht/record_store.hpp"

#include "actors/dht/record_rules.hpp"
#include "actors/dht/signed_record.hpp"

#include <algorithm>
#include <iterator>

namespace shoal::actors {

record_store::place record_store::find_place(const std::string& key, const record& entry) {
  const auto in = keys_.find(key);
  if (in == keys_.end()) return {};
  auto& all = in->second;
  const auto share = all.owners.find(entry.owner);
  if (share == all.owners.end()) return {&all, nullptr, nullptr};
  const auto old = all.records.find({entry.subkey, entry.owner});
  return {&all, old == all.records.end() ? nullptr : &old->second, &share->second};
}

result<bool> record_store::wants(const std::string& key, const place& at, const signed_record& what,
                                 std::int64_t utc) const {
  const auto& entry = what.entry;
  if (key.empty() || key.size() > limits_.max_key_bytes ||
      entry.subkey.size() > limits_.max_key_bytes)
    return failure{"a key is empty or too long"};
  if (entry.value.size() > limits_.max_value_bytes) return failure{"the value is too large"};
  if (entry.value.is_size_only()) return failure{"the value has no bytes"};
  // The record was under way for too long. The sender did nothing wrong.
  if (entry.expires_utc_ns <= utc) return false;
  // The owner is faulty or its clock is far ahead; this node cannot tell.
  const auto& rule = rule_of(key);
  if (entry.expires_utc_ns - utc > std::min(limits_.max_lifetime, rule.max_lifetime).count())
    return false;
  const kept* replaces = at.old;
  if (replaces == nullptr && rule.one_per_owner && at.of_owner != nullptr)
    replaces = &at.in->records.find(*at.of_owner->only)->second;
  if (replaces != nullptr && !is_newer(what, *replaces->what)) return false;
  const auto owner = owners_.find(entry.owner);
  const auto used = owner == owners_.end() ? usage{} : owner->second;
  const auto freed = replaces != nullptr ? bytes_of(key, replaces->what->entry) : 0;
  if (used.bytes - freed + bytes_of(key, entry) > limits_.max_bytes_per_owner)
    return failure{"too many bytes of one owner"};
  if (replaces != nullptr) return true;

  if (at.in == nullptr && keys_.size() >= limits_.max_keys) return failure{"too many keys"};
  if (at.in != nullptr && at.in->records.size() >= limits_.max_records_per_key)
    return failure{"too many records under one key"};
  if (size() >= limits_.max_records) return failure{"too many records"};
  if (at.of_owner == nullptr && used.keys >= limits_.max_keys_per_owner)
    return failure{"too many keys of one owner"};
  if (used.records >= limits_.max_records_per_owner)
    return failure{"too many records of one owner"};
  if (at.of_owner != nullptr && at.of_owner->records >= limits_.max_records_per_owner_and_key)
    return failure{"too many records of one owner under one key"};
  return true;
}

void record_store::keep(const std::string& key, place at, const shared<signed_record>& what) {
  const auto sequence = next_sequence_++;
  const auto& entry = what->entry;
  const expiry when{entry.expires_utc_ns, sequence};
  if (at.old != nullptr) {
    auto& one = *at.old;
    auto& used = owners_.find(entry.owner)->second;
    used.bytes += bytes_of(key, entry);
    used.bytes -= bytes_of(key, one.what->entry);
    one.what = what;
    one.sequence = sequence;
    at.in->by_sequence.splice(at.in->by_sequence.end(), at.in->by_sequence, one.listed);
    if (when < one.looked_at) look_at(one, when);
    return;
  }
  if (at.of_owner != nullptr && rule_of(key).one_per_owner) {
    const record_name before = *at.of_owner->only;
    remove(key, before);
  }
  const auto in = keys_.try_emplace(key).first;
  const auto fresh = in->second.records.try_emplace({entry.subkey, entry.owner}).first;
  auto& share = in->second.owners[entry.owner];
  auto& used = owners_[entry.owner];
  if (share.records++ == 0) ++used.keys;
  if (rule_of(key).one_per_owner) share.only = &fresh->first;
  ++used.records;
  used.bytes += bytes_of(key, entry);
  auto& all = in->second.by_sequence;
  fresh->second = {what, sequence, sequence, when, all.insert(all.end(), &fresh->second)};
  by_expiry_.emplace(when, names{&in->first, &fresh->first});
}

void record_store::look_at(kept& one, const expiry& when) {
  auto known = by_expiry_.extract(one.looked_at);
  known.key() = one.looked_at = when;
  by_expiry_.insert(std::move(known));
}

record_store::changes record_store::after(const std::string& key, std::uint64_t sequence,
                                          std::size_t most) const {
  changes out;
  auto at = keys_.find(key);
  if (at == keys_.end()) return out;
  out.sequence = sequence;
  // The search begins at the end, because a reader has nearly all changes.
  const auto& all = at->second.by_sequence;
  auto from = all.end();
  std::size_t count = 0;
  for (; from != all.begin() && (*std::prev(from))->sequence > sequence; --from) ++count;
  out.more = count > most;
  out.records.reserve(std::min(count, most));
  for (; out.records.size() < std::min(count, most); ++from) {
    out.records.push_back((*from)->what);
    out.sequence = (*from)->sequence;
    if ((*from)->first > sequence) out.new_owners.push_back((*from)->what->entry.owner);
  }
  return out;
}

const signed_record* record_store::find(const std::string& key, const std::string& subkey,
                                        const key256& owner) const {
  auto at = keys_.find(key);
  if (at == keys_.end()) return nullptr;
  auto entry = at->second.records.find({subkey, owner});
  return entry == at->second.records.end() ? nullptr : &*entry->second.what;
}

void record_store::forget(const std::string& key, const dictionary& in, const kept& one) {
  const auto& entry = one.what->entry;
  const auto used = owners_.find(entry.owner);
  if (in.owners.find(entry.owner)->second.records == 1) --used->second.keys;
  used->second.bytes -= bytes_of(key, entry);
  if (--used->second.records == 0) owners_.erase(used);
  by_expiry_.erase(one.looked_at);
}

void record_store::remove(const std::string& key, const record_name& name) {
  auto at = keys_.find(key);
  if (at == keys_.end()) return;
  auto& in = at->second;
  auto entry = in.records.find(name);
  if (entry == in.records.end()) return;
  forget(key, in, entry->second);
  const auto share = in.owners.find(name.owner);
  if (--share->second.records == 0) in.owners.erase(share);
  in.by_sequence.erase(entry->second.listed);
  in.records.erase(entry);
  if (in.records.empty()) keys_.erase(at);
}

void record_store::drop_expired(std::int64_t utc) {
  while (!by_expiry_.empty() && by_expiry_.begin()->first.first <= utc) {
    const auto [key, name] = by_expiry_.begin()->second;
    auto& one = keys_.find(*key)->second.records.find(*name)->second;
    if (one.what->entry.expires_utc_ns > utc)
      look_at(one, {one.what->entry.expires_utc_ns, one.sequence});
    else
      remove(*key, *name);
  }
}

void record_store::drop_key(const std::string& key) {
  auto at = keys_.find(key);
  if (at == keys_.end()) return;
  auto& in = at->second;
  for (const auto& [name, kept] : in.records) {
    forget(key, in, kept);
    --in.owners.find(name.owner)->second.records;
  }
  keys_.erase(at);
}

std::vector<std::string> record_store::keys() const {
  std::vector<std::string> out;
  for (const auto& [key, at] : keys_) out.push_back(key);
  return out;
}

duration record_store::touched(const std::string& key) const {
  auto at = keys_.find(key);
  return at == keys_.end() ? duration{} : at->second.touched;
}

void record_store::touch(const std::string& key, duration now) {
  if (auto at = keys_.find(key); at != keys_.end()) at->second.touched = now;
}

} // namespace shoal::actors
