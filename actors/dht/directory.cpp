#include "actors/dht/directory.hpp"

namespace shoal::actors {

directory::directory(caf::actor_config& config, host& on, directory_config settings)
    : protocol_actor(config, on), settings_(settings) {}

void directory::on_exit() {
  records_.clear();
  protocol_actor::on_exit();
}

caf::behavior directory::make_behavior() {
  return {
      [this](const store& what) { on_store(what); },
      [this](const withdraw& what) {
        drop_expired();
        remove(what.key, what.subkey);
      },
      [this](const lookup& what) { on_lookup(what); },
  };
}

void directory::on_store(const store& what) {
  drop_expired();
  const auto& entry = what.entry;
  if (what.key.empty() || what.key.size() > settings_.max_key_bytes ||
      entry.subkey.size() > settings_.max_key_bytes)
    return misbehaviour(0, "store: a key is empty or too long");
  if (entry.value.size() > settings_.max_value_bytes)
    return misbehaviour(0, "store: the value is too large");
  const auto utc = here().utc_ns();
  if (entry.expires_utc_ns <= utc)
    return; // was on its way for too long: no fault of the sender's
  if (entry.expires_utc_ns - utc > settings_.max_lifetime.count())
    return misbehaviour(0, "store: the record lives too long");

  const auto key = records_.find(what.key);
  if (key == records_.end() && records_.size() >= settings_.max_keys)
    return misbehaviour(0, "store: too many keys");
  if (key != records_.end()) {
    const auto old = key->second.find(entry.subkey);
    if (old != key->second.end() && old->second.expires_utc_ns > entry.expires_utc_ns)
      return;
    if (old == key->second.end() && key->second.size() >= settings_.max_records_per_key)
      return misbehaviour(0, "store: too many records under one key");
    remove(what.key, entry.subkey);
  }
  if (by_expiry_.size() >= settings_.max_records)
    return misbehaviour(0, "store: too many records");
  records_[what.key].insert_or_assign(entry.subkey, entry);
  by_expiry_.emplace(entry.expires_utc_ns, what.key, entry.subkey);
}

void directory::on_lookup(const lookup& what) {
  drop_expired();
  if (!what.reply_to)
    return misbehaviour(0, "lookup: nobody to reply to");
  found answer{what.key, what.token, {}};
  if (const auto key = records_.find(what.key); key != records_.end()) {
    answer.records.reserve(key->second.size());
    for (const auto& [subkey, entry] : key->second)
      answer.records.push_back(entry);
  }
  send(what.reply_to, std::move(answer));
}

void directory::remove(const std::string& key, const std::string& subkey) {
  const auto at = records_.find(key);
  if (at == records_.end())
    return;
  const auto entry = at->second.find(subkey);
  if (entry == at->second.end())
    return;
  by_expiry_.erase({entry->second.expires_utc_ns, key, subkey});
  at->second.erase(entry);
  if (at->second.empty())
    records_.erase(at);
}

void directory::drop_expired() {
  const auto utc = here().utc_ns();
  while (!by_expiry_.empty() && std::get<0>(*by_expiry_.begin()) <= utc) {
    const auto [when, key, subkey] = *by_expiry_.begin();
    remove(key, subkey);
  }
}

} // namespace shoal::actors
