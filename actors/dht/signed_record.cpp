#include "actors/dht/signed_record.hpp"

#include "actors/dht/record_rules.hpp"
#include "actors/trust/identity.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_control_block.hpp>

#include <cstring>
#include <tuple>
#include <utility>

namespace shoal::actors {

namespace {

void add_address(hasher& to, const caf::actor& address) {
  to.add(static_cast<std::uint8_t>(address ? 1 : 0));
  if (!address) return;
  to.add(static_cast<std::uint64_t>(address.id()))
      .add(std::string_view{caf::to_string(address.node())});
}

digest what_is_signed(std::string_view key, const signed_record& what) {
  auto h = statement("shoal.record");
  h.add(key).add(std::string_view{what.entry.subkey});
  add_address(h, what.entry.address);
  h.add(static_cast<std::uint64_t>(what.entry.value.size()));
  if (!what.entry.value.empty()) h.add(what.entry.value.bytes());
  h.add(what.entry.expires_utc_ns).add(what.version).add(what.withdrawn);
  for (auto word : {what.entry.owner.a, what.entry.owner.b, what.entry.owner.c, what.entry.owner.d})
    h.add(word);
  return h.finish();
}

bool same(const key256& a, const key256& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

/// Compares all signed fields but key and address, and the signature.
bool same(const signed_record& a, const signed_record& b) {
  return a.version == b.version && a.withdrawn == b.withdrawn &&
         a.entry.expires_utc_ns == b.entry.expires_utc_ns && same(a.signature_r, b.signature_r) &&
         same(a.signature_s, b.signature_s) && same(a.entry.owner, b.entry.owner) &&
         a.entry.subkey == b.entry.subkey && a.entry.value == b.entry.value;
}

} // namespace

signed_record sign_record(const host& by, std::string_view key, record entry, std::uint64_t version,
                          bool withdrawn, signature_cache* signatures) {
  signed_record out;
  out.entry = std::move(entry);
  out.entry.owner = by.key();
  out.version = version;
  out.withdrawn = withdrawn ? 1 : 0;
  const auto made = by.sign(what_is_signed(key, out));
  out.signature_r = made.r;
  out.signature_s = made.s;
  if (signatures != nullptr) signatures->add(key, out);
  return out;
}

bool signature_cache::knows(std::string_view key, const signed_record& what) const {
  std::lock_guard guard(mutex_);
  for (const auto* one : {&young_, &old_})
    if (const auto found = one->find(what.signature_r.a); found != one->end()) {
      const auto& [its_key, its, number, node] = found->second;
      const auto& address = what.entry.address;
      return its_key == key && number == (address ? address.id() : 0) &&
             (!address || node == caf::actor_cast<caf::actor_control_block*>(address)->node()) &&
             same(its, what);
    }
  return false;
}

void signature_cache::add(std::string_view key, const signed_record& what) {
  known one{std::string(key), what, 0, {}};
  if (auto address = std::exchange(one.what.entry.address, nullptr)) {
    one.number = address.id();
    one.node = address.node();
  }
  std::lock_guard guard(mutex_);
  young_.insert_or_assign(what.signature_r.a, std::move(one));
  if (young_.size() < least_) return;
  old_ = std::move(young_);
  young_.clear();
}

std::string_view not_genuine(const host& reader, std::string_view key, const signed_record& what,
                             signature_cache* signatures) {
  const auto& entry = what.entry;
  if (entry.value.is_size_only()) return "the value has no bytes";
  if (signatures != nullptr && signatures->knows(key, what)) return {};
  if (entry.address) {
    const auto address = caf::actor_cast<caf::strong_actor_ptr>(entry.address);
    if (reader.member_of(address) != member_of(entry.owner))
      return "the address is not on its owner's host";
    if (!is_subkey_of(rule_of(key).form, entry.subkey, reader.peer_of(address)))
      return "the sub-key names another peer than the address";
  }
  if (!reader.is_signed_by(entry.owner, what_is_signed(key, what),
                           {what.signature_r, what.signature_s}))
    return "the signature is not its owner's";
  if (signatures != nullptr) signatures->add(key, what);
  return {};
}

bool is_newer(const signed_record& a, const signed_record& b) {
  return std::tuple(a.version, a.entry.expires_utc_ns, a.withdrawn) >
         std::tuple(b.version, b.entry.expires_utc_ns, b.withdrawn);
}

} // namespace shoal::actors
