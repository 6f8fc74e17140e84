#include "actors/trust/identity.hpp"

#include "actors/node_data.hpp"
#include "kernels/base/check.hpp"

#include <sodium.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

namespace shoal::actors {

static_assert(sizeof(key256) == 32 && sizeof(signature) == 64);

member_id member_of(const key256& key) {
  return member_id::from(hash_of(std::as_bytes(std::span(&key, 1))));
}

member_id member_of(const caf::node_id& node) {
  const auto* data = data_of(node);
  member_id out;
  if (data == nullptr || !data->valid()) return out;
  digest first;
  const auto host = data->host_id(); // a copy: begin() and end() must be of one object
  std::copy(host.begin(), host.end(), first.bytes.begin());
  return member_id::from(first);
}

key256 key_from(std::string_view bytes) {
  SHOAL_CHECK(bytes.size() == sizeof(key256), "a key has 32 bytes");
  key256 out;
  std::memcpy(&out, bytes.data(), sizeof out);
  return out;
}

std::string bytes_of(const key256& key) {
  return {reinterpret_cast<const char*>(&key), sizeof key};
}

key256 stand_in_key(std::string_view name) {
  const auto hash = hasher{}.add(std::string_view{"shoal.stand_in_key"}).add(name).finish();
  return key_from({reinterpret_cast<const char*>(hash.bytes.data()), hash.bytes.size()});
}

signature stand_in_signature(std::uint64_t secret, const key256& by, const digest& statement) {
  std::array<unsigned char, 72> text;
  std::memcpy(text.data(), &secret, 8);
  std::memcpy(text.data() + 8, &by, 32);
  std::memcpy(text.data() + 40, statement.bytes.data(), 32);
  signature out;
  crypto_generichash(reinterpret_cast<unsigned char*>(&out), sizeof out, text.data(), text.size(),
                     nullptr, 0);
  return out;
}

bool is_signed_by(const key256& key, const digest& statement, const signature& by) {
  return crypto_sign_verify_detached(reinterpret_cast<const unsigned char*>(&by),
                                     statement.bytes.data(), statement.bytes.size(),
                                     reinterpret_cast<const unsigned char*>(&key)) == 0;
}

hasher statement(std::string_view kind) {
  hasher out;
  out.add(std::string_view{"shoal.statement"}).add(kind);
  return out;
}

} // namespace shoal::actors
