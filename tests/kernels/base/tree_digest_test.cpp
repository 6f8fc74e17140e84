#include "kernels/base/tree_digest.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

using namespace shoal;

TEST_CASE("tree digests are BLAKE3") {
  // The test vectors that its authors publish: byte i of the input is i modulo 251. The counts of
  // whole pieces fill one lane, four, eight and sixteen, and leave some over.
  const std::pair<std::size_t, std::string> known[] = {
      {0, "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"},
      {1, "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213"},
      {1023, "10108970eeda3eb932baac1428c7a2163b0e924c9a9e25b35bba72b28f70bd11"},
      {1024, "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7"},
      {1025, "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444"},
      {3073, "7124b49501012f81cc7f11ca069ec9226cecb8a2c850cfe644e327d22d3e1cd3"},
      {5121, "628bd2cb2004694adaab7bbd778a25df25c47b9d4155a55f8fbd79f2fe154cff"},
      {7168, "61da957ec2499a95d6b8023e2b0e604ec7f6b50e80a9678b89d2628e99ada77a"},
      {16384, "f875d6646de28985646f34ee13be9a576fd515f76b5b0a26bb324735041ddde4"},
      {31744, "62b6960e1a44bcc1eb1a611a8d6235b6b4b78f32e7abc4fb4c6cdcce94895c47"},
      {102400, "bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085"}};
  for (const auto& [size, expected] : known) {
    std::vector<std::byte> input(size);
    for (std::size_t i = 0; i < size; ++i) input[i] = static_cast<std::byte>(i % 251);
    CAPTURE(size);
    CHECK(tree_hash_of(input).hex() == expected);
  }
}

TEST_CASE("tree digests do not depend on where the bytes lie") {
  std::vector<std::byte> input(20'001);
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<std::byte>(i * i % 253);
  const std::vector<std::byte> moved(input.begin() + 1, input.end());
  CHECK(tree_hash_of(std::span(input).subspan(1)) == tree_hash_of(moved));
}
