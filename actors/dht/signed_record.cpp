#include "actors/dht/signed_record.hpp"

#include "kernels/base/check.hpp"

#include <sodium.h>

#include <algorithm>
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
  hasher h;
  h.add(std::string_view{"shoal.record"}).add(key).add(std::string_view{what.entry.subkey});
  add_address(h, what.entry.address);
  h.add(static_cast<std::uint64_t>(what.entry.value.size()));
  if (!what.entry.value.empty()) h.add(what.entry.value.bytes());
  h.add(what.entry.expires_utc_ns).add(what.version).add(what.withdrawn);
  for (auto word : {what.owner.a, what.owner.b, what.owner.c, what.owner.d}) h.add(word);
  return h.finish();
}

std::array<unsigned char, 32> bytes_of(const key256& key) {
  static_assert(sizeof(key256) == 32);
  std::array<unsigned char, 32> out;
  std::memcpy(out.data(), &key, 32);
  return out;
}

using signature_bytes = std::array<unsigned char, 64>;

signature_bytes signature_of(const signed_record& what) {
  signature_bytes out;
  std::memcpy(out.data(), &what.signature_r, 32);
  std::memcpy(out.data() + 32, &what.signature_s, 32);
  return out;
}

void set_signature(signed_record& of, const signature_bytes& to) {
  std::memcpy(&of.signature_r, to.data(), 32);
  std::memcpy(&of.signature_s, to.data() + 32, 32);
}

/// The stand-in for a signature of `text`, which includes the owner's key.
signature_bytes stand_in_for(const digest& text) {
  constexpr std::string_view key = "a signature that costs nothing ";
  signature_bytes out;
  crypto_generichash(out.data(), out.size(), text.bytes.data(), text.bytes.size(),
                     reinterpret_cast<const unsigned char*>(key.data()), key.size());
  return out;
}

bool same(const key256& a, const key256& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

bool same(const payload& a, const payload& b) {
  if (a.same_memory(b)) return true;
  return a.size() == b.size() && !a.is_size_only() && !b.is_size_only() &&
         std::ranges::equal(a.bytes(), b.bytes());
}

/// Compares all signed fields but key and address, and the signature.
bool same(const signed_record& a, const signed_record& b) {
  return a.version == b.version && a.withdrawn == b.withdrawn &&
         a.entry.expires_utc_ns == b.entry.expires_utc_ns && same(a.signature_r, b.signature_r) &&
         same(a.signature_s, b.signature_s) && same(a.owner, b.owner) &&
         a.entry.subkey == b.entry.subkey && same(a.entry.value, b.entry.value);
}

} // namespace

identity::identity(rng seed) {
  SHOAL_CHECK(sodium_init() >= 0, "libsodium starts");
  std::array<std::uint64_t, 4> words;
  for (auto& word : words) word = seed.next();
  std::array<unsigned char, 32> bytes, key;
  std::memcpy(bytes.data(), words.data(), 32);
  crypto_sign_seed_keypair(key.data(), secret_.data(), bytes.data());
  std::memcpy(&public_, key.data(), 32);
}

node_id identity::id() const {
  hasher h;
  h.add(std::string_view{"dht.node"});
  for (auto word : {public_.a, public_.b, public_.c, public_.d}) h.add(word);
  return node_id::from(h.finish());
}

signed_record identity::sign(std::string_view key, record entry, std::uint64_t version,
                             bool withdrawn, signature_cache* signatures) const {
  signed_record out;
  out.entry = std::move(entry);
  out.version = version;
  out.withdrawn = withdrawn ? 1 : 0;
  out.owner = public_;
  const auto text = what_is_signed(key, out);
  signature_bytes signature;
  if (signatures != nullptr && signatures->how() == signature_cache::signing::stand_in)
    signature = stand_in_for(text);
  else
    crypto_sign_detached(signature.data(), nullptr, text.bytes.data(), text.bytes.size(),
                         secret_.data());
  set_signature(out, signature);
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
             (!address || node == address.node()) && same(its, what);
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

bool is_genuine(std::string_view key, const signed_record& what, signature_cache* signatures) {
  if (what.entry.value.is_size_only()) return false;
  if (signatures != nullptr && signatures->knows(key, what)) return true;
  const auto text = what_is_signed(key, what);
  const auto signature = signature_of(what);
  if (signatures != nullptr && signatures->how() == signature_cache::signing::stand_in) {
    if (signature != stand_in_for(text)) return false;
  } else {
    const auto owner = bytes_of(what.owner);
    if (crypto_sign_verify_detached(signature.data(), text.bytes.data(), text.bytes.size(),
                                    owner.data()) != 0)
      return false;
  }
  if (signatures != nullptr) signatures->add(key, what);
  return true;
}

bool is_newer(const signed_record& a, const signed_record& b) {
  return std::tuple(a.version, a.entry.expires_utc_ns, a.withdrawn) >
         std::tuple(b.version, b.entry.expires_utc_ns, b.withdrawn);
}

} // namespace shoal::actors
