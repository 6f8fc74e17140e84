#include "netem/wire/message_frames.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::netem::wire;

namespace {

payload numbered(std::size_t size) {
  std::vector<std::byte> out(size);
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<std::byte>(i * 7 % 251);
  return payload{std::move(out)};
}

/// The bytes of a frame on the wire.
payload flat(const frame& what) {
  const auto head = std::as_bytes(std::span(what.head));
  std::vector<std::byte> out(head.begin(), head.end());
  for (const auto& part : what.behind)
    out.insert(out.end(), part.bytes().begin(), part.bytes().end());
  return payload{std::move(out)};
}

} // namespace

TEST_CASE("a message of any size is cut into frames and assembled again") {
  for (const std::size_t binary : {0, 1, 8, 1000})
    for (const std::size_t beside : {0, 5, 100, 968, 976, 5000}) {
      CAPTURE(binary);
      CAPTURE(beside);
      encoded_message what;
      what.binary.assign(binary, 'b');
      if (beside > 0) what.beside.push_back(numbered(beside));
      message_head head;
      head.to = 4;
      head.from = 5;
      const auto frames = frames_of(head, what, 1008);
      message_assembly other_side;
      std::optional<message_assembly::whole> whole;
      for (std::size_t i = 0; i < frames.size(); ++i) {
        CHECK(frames[i].size() <= 1008);
        CHECK_FALSE(whole);
        const auto bytes = flat(frames[i]);
        REQUIRE((i == 0 ? other_side.begin(bytes, whole) : other_side.piece(bytes, whole)));
      }
      REQUIRE(whole);
      CHECK(whole->head.to == 4);
      CHECK(whole->head.from == 5);
      CHECK(whole->head.binary == binary);
      CHECK(whole->head.beside == beside);
      const auto body = whole->body.bytes().last(beside);
      const auto expected = numbered(beside);
      CHECK(std::equal(body.begin(), body.end(), expected.bytes().begin(), expected.bytes().end()));
    }
}

TEST_CASE("a payload that fits is not copied") {
  encoded_message what;
  what.beside.push_back(numbered(5000));
  const auto frames = frames_of({}, what, piece_bytes);
  REQUIRE(frames.size() == 1);
  REQUIRE(frames[0].behind.size() == 1);
  CHECK(frames[0].behind[0].same_memory(what.beside[0]));
}
