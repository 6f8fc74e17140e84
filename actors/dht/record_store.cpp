#include "actors/dht/record_store.hpp"

#include "actors/dht/signed_record.hpp"

#include <algorithm>
#include <iterator>

namespace shoal::actors {

record_store::place record_store::find_place(const std::string& key, const std::string& subkey) {
  const auto in = keys_.find(key);
  if (in == keys_.end()) return {};
  const auto old = in->second.records.find(subkey);
  return {&in->second, old == in->second.records.end() ? nullptr : &old->second};
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
  if (entry.expires_utc_ns - utc > limits_.max_lifetime.count()) return false;
  if (at.in == nullptr) {
    if (keys_.size() >= limits_.max_keys) return failure{"too many keys"};
  } else if (at.old != nullptr) {
    const auto& known = *at.old->what;
    if (known.owner == what.owner) return is_newer(what, known);
    if (known.entry.expires_utc_ns > utc) return failure{"the sub-key is another owner's"};
    return true;
  } else if (at.in->records.size() >= limits_.max_records_per_key) {
    return failure{"too many records under one key"};
  }
  if (size() >= limits_.max_records) return failure{"too many records"};
  return true;
}

void record_store::keep(const std::string& key, place at, const shared<signed_record>& what) {
  const auto sequence = next_sequence_++;
  const expiry when{what->entry.expires_utc_ns, sequence};
  if (at.old != nullptr) {
    auto& one = *at.old;
    one.what = what;
    one.sequence = sequence;
    at.in->by_sequence.splice(at.in->by_sequence.end(), at.in->by_sequence, one.listed);
    if (when < one.looked_at) look_at(one, when);
    return;
  }
  const auto in = keys_.try_emplace(key).first;
  const auto fresh = in->second.records.try_emplace(what->entry.subkey).first;
  auto& all = in->second.by_sequence;
  fresh->second = {what, sequence, when, all.insert(all.end(), &fresh->second)};
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
  }
  return out;
}

const signed_record* record_store::find(const std::string& key, const std::string& subkey) const {
  auto at = keys_.find(key);
  if (at == keys_.end()) return nullptr;
  auto entry = at->second.records.find(subkey);
  return entry == at->second.records.end() ? nullptr : &*entry->second.what;
}

void record_store::remove(const std::string& key, const std::string& subkey) {
  auto at = keys_.find(key);
  if (at == keys_.end()) return;
  auto entry = at->second.records.find(subkey);
  if (entry == at->second.records.end()) return;
  by_expiry_.erase(entry->second.looked_at);
  at->second.by_sequence.erase(entry->second.listed);
  at->second.records.erase(entry);
  if (at->second.records.empty()) keys_.erase(at);
}

void record_store::drop_expired(std::int64_t utc) {
  while (!by_expiry_.empty() && by_expiry_.begin()->first.first <= utc) {
    const auto [key, subkey] = by_expiry_.begin()->second;
    auto& one = *find_place(*key, *subkey).old;
    if (one.what->entry.expires_utc_ns > utc)
      look_at(one, {one.what->entry.expires_utc_ns, one.sequence});
    else
      remove(*key, *subkey);
  }
}

void record_store::drop_key(const std::string& key) {
  auto at = keys_.find(key);
  if (at == keys_.end()) return;
  for (const auto& [subkey, kept] : at->second.records) by_expiry_.erase(kept.looked_at);
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
