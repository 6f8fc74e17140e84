#include "actors/dht/signed_record.hpp"

#include <cstring>
#include <tuple>

#include <sodium.h>

#include "kernels/base/check.hpp"

namespace shoal::actors {

namespace {

void add_address(hasher& to, const caf::actor& address) {
  to.add(static_cast<std::uint8_t>(address ? 1 : 0));
  if (!address) return;
  to.add(static_cast<std::uint64_t>(address.id())).add(std::string_view{caf::to_string(address.node())});
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

std::array<unsigned char, 64> signature_of(const signed_record& what) {
  std::array<unsigned char, 64> out;
  std::memcpy(out.data(), &what.signature_r, 32);
  std::memcpy(out.data() + 32, &what.signature_s, 32);
  return out;
}

}  // namespace

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

signed_record identity::sign(std::string_view key, record entry, std::uint64_t version, bool withdrawn) const {
  signed_record out;
  out.entry = std::move(entry);
  out.version = version;
  out.withdrawn = withdrawn ? 1 : 0;
  out.owner = public_;
  auto text = what_is_signed(key, out);
  std::array<unsigned char, 64> signature;
  crypto_sign_detached(signature.data(), nullptr, text.bytes.data(), text.bytes.size(), secret_.data());
  std::memcpy(&out.signature_r, signature.data(), 32);
  std::memcpy(&out.signature_s, signature.data() + 32, 32);
  return out;
}

bool signature_memo::knows(const digest& text, const std::array<unsigned char, 64>& signature) const {
  std::lock_guard guard(mutex_);
  for (const auto* one : {&young_, &old_})
    if (const auto found = one->find(text); found != one->end()) return found->second == signature;
  return false;
}

void signature_memo::add(const digest& text, const std::array<unsigned char, 64>& signature) {
  std::lock_guard guard(mutex_);
  young_.insert_or_assign(text, signature);
  if (young_.size() < least_) return;
  old_ = std::move(young_);
  young_.clear();
}

void remember_own(std::string_view key, const signed_record& what, signature_memo& memo) {
  memo.add(what_is_signed(key, what), signature_of(what));
}

bool is_genuine(std::string_view key, const signed_record& what, signature_memo* memo) {
  if (what.entry.value.is_hollow()) return false;
  auto text = what_is_signed(key, what);
  auto signature = signature_of(what);
  if (memo != nullptr && memo->knows(text, signature)) return true;
  auto owner = bytes_of(what.owner);
  if (crypto_sign_verify_detached(signature.data(), text.bytes.data(), text.bytes.size(), owner.data()) != 0) return false;
  if (memo != nullptr) memo->add(text, signature);
  return true;
}

bool is_newer(const signed_record& a, const signed_record& b) {
  return std::tuple(a.version, a.entry.expires_utc_ns, a.withdrawn) >
         std::tuple(b.version, b.entry.expires_utc_ns, b.withdrawn);
}

}  // namespace shoal::actors
