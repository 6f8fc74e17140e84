#include "netem/wire/signing_key.hpp"

#include "netem/wire/pem.hpp"

#include <openssl/evp.h>

#include <memory>

namespace shoal::netem::wire {

namespace {

using context = std::unique_ptr<EVP_MD_CTX, pem::freed_by<EVP_MD_CTX_free>>;

const unsigned char* data_of(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

} // namespace

signing_key::signing_key(evp_pkey_st* key) : key_(key, EVP_PKEY_free) {
  const auto bytes = pem::public_key(key);
  SHOAL_CHECK(bytes.has_value(), "not an Ed25519 key");
  public_key_ = *bytes;
}

signing_key signing_key::make() {
  EVP_PKEY* key = EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519");
  pem::must(key != nullptr, "OpenSSL cannot make a key");
  return signing_key(key);
}

result<signing_key> signing_key::read(std::string_view text) {
  auto key = pem::read_key(text);
  if (!key) return failure{key.error()};
  return signing_key(key->release());
}

signature_bytes signing_key::sign(std::span<const std::byte> bytes) const {
  const pem::quiet errors;
  signature_bytes out{};
  std::size_t size = out.size();
  const context state(EVP_MD_CTX_new());
  pem::must(state != nullptr &&
                EVP_DigestSignInit(state.get(), nullptr, nullptr, nullptr, key_.get()) == 1 &&
                EVP_DigestSign(state.get(), reinterpret_cast<unsigned char*>(out.data()), &size,
                               data_of(bytes), bytes.size()) == 1 &&
                size == out.size(),
            "OpenSSL cannot sign");
  return out;
}

secret_text signing_key::pem() const {
  return pem::write(*key_);
}

bool verify(const public_key_bytes& public_key, std::span<const std::byte> bytes,
            std::span<const std::byte> signature) {
  if (signature.size() != std::tuple_size_v<signature_bytes>) return false;
  const pem::quiet errors;
  const pem::key key(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, data_of(public_key),
                                                 public_key.size()));
  const context state(EVP_MD_CTX_new());
  return key != nullptr && state != nullptr &&
         EVP_DigestVerifyInit(state.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
         EVP_DigestVerify(state.get(), data_of(signature), signature.size(), data_of(bytes),
                          bytes.size()) == 1;
}

} // namespace shoal::netem::wire
