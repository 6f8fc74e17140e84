#include "actors/dht/record_store.hpp"

#include "actors/dht/signed_record.hpp"

namespace shoal::actors {

result<bool> record_store::wants(const std::string& key, const signed_record& what, std::int64_t utc) const {
  const auto& entry = what.entry;
  if (key.empty() || key.size() > limits_.max_key_bytes || entry.subkey.size() > limits_.max_key_bytes)
    return failure{"a key is empty or too long"};
  if (entry.value.size() > limits_.max_value_bytes) return failure{"the value is too large"};
  if (entry.value.is_hollow()) return failure{"the value has no bytes"};
  if (entry.expires_utc_ns <= utc) return false;  // was on its way for too long: no fault of the sender's
  // A liar, or a clock that is far ahead: nobody can tell.
  if (entry.expires_utc_ns - utc > limits_.max_lifetime.count()) return false;
  auto at = keys_.find(key);
  if (at == keys_.end()) {
    if (keys_.size() >= limits_.max_keys) return failure{"too many keys"};
  } else if (auto old = at->second.records.find(entry.subkey); old != at->second.records.end()) {
    const auto& known = *old->second.what;
    if (known.owner == what.owner) return is_newer(what, known);
    if (known.entry.expires_utc_ns > utc) return failure{"the sub-key is another owner's"};
    return true;
  } else if (at->second.records.size() >= limits_.max_records_per_key) {
    return failure{"too many records under one key"};
  }
  if (by_expiry_.size() >= limits_.max_records) return failure{"too many records"};
  return true;
}

void record_store::keep(const std::string& key, const shared<signed_record>& what) {
  const auto at = keys_.try_emplace(key).first;
  auto& in = at->second;
  const auto sequence = next_sequence_++;
  const auto [entry, fresh] = in.records.try_emplace(what->entry.subkey);
  const expiry when{what->entry.expires_utc_ns, sequence};
  if (fresh) {
    in.by_sequence.emplace(sequence, &entry->second);
    by_expiry_.emplace(when, place{&at->first, &entry->first});
  } else {
    auto by_sequence = in.by_sequence.extract(entry->second.sequence);
    by_sequence.key() = sequence;
    in.by_sequence.insert(in.by_sequence.end(), std::move(by_sequence));
    auto by_expiry = by_expiry_.extract({entry->second.what->entry.expires_utc_ns, entry->second.sequence});
    by_expiry.key() = when;
    by_expiry_.insert(std::move(by_expiry));
  }
  entry->second = {what, sequence};
}

record_store::changes record_store::after(const std::string& key, std::uint64_t sequence, std::size_t most) const {
  changes out;
  auto at = keys_.find(key);
  if (at == keys_.end()) return out;
  out.sequence = sequence;
  for (auto i = at->second.by_sequence.upper_bound(sequence); i != at->second.by_sequence.end(); ++i) {
    if (out.records.size() == most) {
      out.more = true;
      break;
    }
    out.records.push_back(i->second->what);
    out.sequence = i->first;
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
  by_expiry_.erase({entry->second.what->entry.expires_utc_ns, entry->second.sequence});
  at->second.by_sequence.erase(entry->second.sequence);
  at->second.records.erase(entry);
  if (at->second.records.empty()) keys_.erase(at);
}

void record_store::drop_expired(std::int64_t utc) {
  while (!by_expiry_.empty() && by_expiry_.begin()->first.first <= utc) {
    const auto [key, subkey] = by_expiry_.begin()->second;
    remove(*key, *subkey);
  }
}

void record_store::drop_key(const std::string& key) {
  auto at = keys_.find(key);
  if (at == keys_.end()) return;
  for (const auto& [subkey, kept] : at->second.records) by_expiry_.erase({kept.what->entry.expires_utc_ns, kept.sequence});
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

}  // namespace shoal::actors
