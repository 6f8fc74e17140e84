// netem/wire/frame_stream: bytes that come in portions of any size become the frames that were
// sent.
#include "kernels/base/rng.hpp"
#include "netem/wire/frame_stream.hpp"
#include "tests/netem/wire/on_the_wire.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

using namespace shoal;
using namespace shoal::netem::wire;

namespace {

/// Puts the bytes into the stream, in portions of at most `most` bytes. Returns false if they are
/// refused.
bool feed(frame_stream& stream, std::string_view bytes, std::size_t most,
          std::vector<payload>& into) {
  while (!bytes.empty()) {
    std::size_t count = 0;
    for (const auto& place : stream.room()) {
      const auto part = std::min({place.size(), bytes.size(), most - count});
      std::copy_n(reinterpret_cast<const std::byte*>(bytes.data()), part, place.begin());
      bytes.remove_prefix(part);
      count += part;
    }
    REQUIRE(count > 0);
    if (!stream.filled(count, into)) return false;
  }
  return true;
}

std::string text_of(const payload& frame) {
  return {reinterpret_cast<const char*>(frame.bytes().data()), frame.size()};
}

std::string noise(rng& random, std::size_t size) {
  std::string out(size, '\0');
  for (auto& each : out) each = static_cast<char>(random.below(256));
  return out;
}

} // namespace

TEST_CASE("frames of all lengths come out of a stream however its bytes are cut") {
  rng random(1);
  std::vector<std::string> sent;
  std::string all;
  for (const std::size_t size : {0, 1, 7, 8, 9, 4080, 4088, 4089, 5000, 16384, 1, 2, 300'000, 3})
    sent.push_back(noise(random, size));
  for (int i = 0; i < 300; ++i) sent.push_back(noise(random, random.below(6000)));
  for (const auto& each : sent) all += on_the_wire(each);
  for (const std::size_t most : {1u, 3u, 8u, 100u, 4096u, 20'000u, 1u << 30}) {
    CAPTURE(most);
    frame_stream stream;
    std::vector<payload> came;
    REQUIRE(feed(stream, all, most, came));
    CHECK(stream.is_between_frames());
    REQUIRE(came.size() == sent.size());
    for (std::size_t i = 0; i < sent.size(); ++i) {
      REQUIRE(text_of(came[i]) == sent[i]);
      REQUIRE(reinterpret_cast<std::uintptr_t>(came[i].bytes().data()) % 8 == 0);
    }
  }
}

TEST_CASE("a stream says how much memory its incomplete long frame has") {
  frame_stream stream;
  std::vector<payload> came;
  const auto bytes = on_the_wire(std::string(100'001, 'x'));
  REQUIRE(feed(stream, std::string_view(bytes).substr(0, 5000), 1000, came));
  CHECK(stream.incomplete() == 100'008);
  CHECK_FALSE(stream.is_between_frames());
  REQUIRE(feed(stream, std::string_view(bytes).substr(5000), 1 << 20, came));
  CHECK(stream.incomplete() == 0);
  CHECK(came.size() == 1);
}

TEST_CASE("a frame that is too long is refused before it has memory") {
  std::vector<payload> came;
  frame_stream longest;
  const auto good = frame_prefix(max_frame_bytes), bad = frame_prefix(max_frame_bytes + 1);
  CHECK(feed(longest, {good.data(), good.size()}, 8, came));
  frame_stream too_long;
  CHECK_FALSE(feed(too_long, {bad.data(), bad.size()}, 8, came));
  CHECK(too_long.incomplete() == 0);
}

TEST_CASE("a stream refuses bytes that are no frames or shows frames within its bytes") {
  rng random(2);
  std::string text;
  for (const std::size_t size : {1, 8, 9, 100, 1000}) text += on_the_wire(std::string(size, 'f'));
  std::size_t refused = 0;
  std::uint64_t touched = 0;
  const auto look_at = [&](const std::string& what) {
    std::vector<payload> frames;
    frame_stream stream;
    refused += !feed(stream, what, 1 + random.below(2000), frames);
    std::size_t sum = 0;
    for (const auto& each : frames) {
      sum += frame_prefix_bytes + each.size();
      for (const auto byte : each.bytes())
        touched += std::to_integer<std::uint64_t>(byte); // every byte must be readable
    }
    REQUIRE(sum <= what.size());
  };
  for (int round = 0; round < 10'000; ++round) {
    auto changed = text;
    for (auto bits = 1 + random.below(4); bits > 0; --bits)
      changed[random.below(changed.size())] ^= static_cast<char>(1 << random.below(8));
    look_at(changed);
    look_at(noise(random, 8 + random.below(300)));
  }
  CHECK(refused > 9'900); // nearly all noise has bits where a prefix has zeros
}
