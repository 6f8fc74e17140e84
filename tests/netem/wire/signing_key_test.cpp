#include "netem/wire/pem.hpp"
#include "netem/wire/signing_key.hpp"

#include <doctest/doctest.h>

#include <array>
#include <span>
#include <string>

using namespace shoal::netem::wire;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

template <std::size_t Size>
std::string hex(const std::array<std::byte, Size>& bytes) {
  std::string out;
  for (std::byte b : bytes)
    for (int shift : {4, 0}) out += "0123456789abcdef"[(std::to_integer<int>(b) >> shift) & 15];
  return out;
}

} // namespace

TEST_CASE("a signature is that of RFC 8032") {
  // Section 7.1, test 3, with the key as PKCS #8.
  const auto key =
      signing_key::read("-----BEGIN PRIVATE "
                        "KEY-----\nMC4CAQAwBQYDK2VwBCIEIMWqjfQ/"
                        "n4N77bdELzHct7Fm04U1B28JS4XOOi4LRFj3\n-----END PRIVATE KEY-----\n");
  REQUIRE(key.ok());
  CHECK(hex(key->public_key()) ==
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025");
  CHECK(hex(key->sign(bytes_of("\xaf\x82"))) ==
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f76098"
        "4dc6594a7c15e9716ed28dc027beceea1ec40a");
}

TEST_CASE("a signature verifies for its signer and text only") {
  const signing_key lab = signing_key::make(), other = signing_key::make();
  CHECK(lab.public_key() != other.public_key());
  const std::string record = "contribution of lab-3: epoch 7, 512 samples";
  const auto signature = lab.sign(bytes_of(record));
  CHECK(verify(lab.public_key(), bytes_of(record), signature));
  CHECK_FALSE(verify(other.public_key(), bytes_of(record), signature));
  CHECK_FALSE(verify(lab.public_key(), bytes_of(record + " "), signature));
  CHECK_FALSE(verify(lab.public_key(), {}, signature));
  CHECK_FALSE(verify(lab.public_key(), bytes_of(record), {}));
  CHECK_FALSE(verify(lab.public_key(), bytes_of(record), std::span(signature).first(63)));
  for (std::size_t bit = 0; bit < 512; ++bit) {
    auto changed = signature;
    changed[bit / 8] ^= std::byte(1U << bit % 8);
    CHECK_FALSE(verify(lab.public_key(), bytes_of(record), changed));
  }
  // An encoding that is not a point of the curve, and the neutral element. For the latter, anybody
  // can make valid signatures of some messages.
  for (const int first : {2, 1}) {
    public_key_bytes weird{};
    weird[0] = std::byte(first);
    CHECK_FALSE(verify(weird, bytes_of(record), signature));
  }
  CHECK(verify(lab.public_key(), {}, lab.sign({})));
}

TEST_CASE("a key is the same after it was written and read") {
  const signing_key made = signing_key::make();
  const secret_text pem = made.pem();
  const auto read = signing_key::read(pem.view());
  REQUIRE(read.ok());
  CHECK(read->public_key() == made.public_key());
  CHECK(read->sign(bytes_of("x")) == made.sign(bytes_of("x")));
}

TEST_CASE("other kinds of keys are refused with their kind") {
  const auto refusal = [](std::string_view pem) {
    const auto read = signing_key::read(pem);
    REQUIRE_FALSE(read.ok());
    return read.error();
  };
  CHECK(refusal("") == "no PEM block: expected '-----BEGIN PRIVATE KEY-----'");
  const pem::key curve(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
  CHECK(refusal(pem::write(*curve).view()) == "a key of another type: expected an Ed25519 key");
  const secret_text whole = signing_key::make().pem();
  const std::string_view text = whole.view();
  CHECK(refusal(text.substr(0, 70)) == "a damaged PEM block: expected a PRIVATE KEY");
  CHECK(refusal(std::string(text) + std::string(text)) ==
        "more than one PEM block: expected one PRIVATE KEY");
  // OpenSSL would ask for the passphrase of this key.
  CHECK(refusal(
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n-----END ENCRYPTED PRIVATE KEY-----\n") ==
        "encrypted with a passphrase, which is not supported: the file's mode is what protects a "
        "key");
  CHECK(refusal("-----BEGIN PUBLIC KEY-----\nMAA=\n-----END PUBLIC KEY-----\n") ==
        "expected a PRIVATE KEY, not a PUBLIC KEY");
}
