#include "kernels/base/digest.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace shoal;

namespace {
std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}
} // namespace

TEST_CASE("digests are BLAKE2b-256") {
  CHECK(hash_of({}).hex() == "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
  CHECK(hash_of(bytes_of("abc")).hex() ==
        "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
  CHECK(hash_of(bytes_of("abc")).prefix() == 0x723942633c81ddbdU);
  // A text is its length in eight bytes, then its characters; integers are little-endian.
  CHECK(hasher().add("abc").add(std::uint32_t{7}).finish().hex() ==
        "15b24dcaec9a0822e9a0a12e5e38d9e383f03cbe11c480b7bd9f47de09ce9cff");
}

TEST_CASE("a hasher goes on after its digest was read") {
  hasher pieces;
  pieces.add(bytes_of("a"));
  CHECK(pieces.current() == hash_of(bytes_of("a")));
  CHECK(pieces.current() == hash_of(bytes_of("a")));
  pieces.add(bytes_of("bc"));
  CHECK(pieces.finish() == hash_of(bytes_of("abc")));

  hasher moved = std::move(pieces);
  CHECK(moved.current() == hash_of(bytes_of("abc")));
}

TEST_CASE("texts that are equal when joined have different digests") {
  CHECK(hasher().add("ab").add("c").finish() != hasher().add("a").add("bc").finish());
  CHECK(hasher().add("").add("a").finish() != hasher().add("a").add("").finish());
}

TEST_CASE("only the empty digest is zero") {
  CHECK(digest{}.is_zero());
  CHECK(digest{}.hex() == std::string(64, '0'));
  CHECK_FALSE(hash_of({}).is_zero());
  CHECK(hasher().add(digest{}).finish() == hash_of(std::vector<std::byte>(32)));
}
