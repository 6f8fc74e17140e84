#include "actors/averaging/part_layout.hpp"

#include <doctest/doctest.h>

#include <numeric>

using namespace shoal;
using namespace shoal::actors;
using namespace std::chrono_literals;

namespace {

payload counting(std::size_t values) {
  std::vector<float> out(values);
  std::iota(out.begin(), out.end(), 0.0f);
  return payload{std::move(out)};
}

} // namespace

TEST_CASE("parts begin at the leader's boundaries and the last chunk of a part may be short") {
  const part_layout layout({0, 5, 5, 8}, 8, false); // chunks of two values
  CHECK(layout.grid(0).count() == 3);
  CHECK(layout.grid(1).count() == 0);
  CHECK(layout.grid(2).count() == 2);
  CHECK(layout.first_value(0, 2) == 4);
  CHECK(layout.first_value(2, 1) == 7);
  const payload vector = counting(8);
  CHECK(layout.slice(vector, 0, 2).size() == 4);
  CHECK(layout.slice(vector, 2, 0).floats()[1] == 6.0f);
}

TEST_CASE("a chunk is found by its offset and only if the bytes can be its own") {
  const part_layout layout({0, 5, 8}, 8, false);
  const payload two = counting(2), one = counting(1);
  CHECK(layout.find_chunk(nullptr, 0, 8, two) == 1u);
  CHECK(layout.find_chunk(nullptr, 0, 16, one) == 2u);
  CHECK_FALSE(layout.find_chunk(nullptr, 0, 16, two)); // one value is left there
  CHECK_FALSE(layout.find_chunk(nullptr, 0, 4, two));  // the middle of a chunk
  CHECK_FALSE(layout.find_chunk(nullptr, 0, 24, one)); // behind the part
  CHECK_FALSE(layout.find_chunk(nullptr, 0, 8, payload::size_only(8)));
  CHECK(part_layout({0, 5, 8}, 8, true).find_chunk(nullptr, 0, 8, payload::size_only(8)) == 1u);
}

TEST_CASE("with a codec a chunk has the codec's bytes and reads back as the codec leaves it") {
  const part_layout layout({0, 6}, 16, false);
  const auto codec = std::make_shared<const kernels::vector_codec>(kernels::codec::float16);
  const payload values = layout.slice(counting(6), 0, 1);
  const payload wire = layout.to_wire(codec, 0, 1, values);
  CHECK(wire.size() == 4); // two values of two bytes
  CHECK(layout.find_chunk(codec, 0, 16, wire) == 1u);
  CHECK_FALSE(layout.find_chunk(codec, 0, 16, values));
  const auto read = layout.from_wire(codec, 0, 1, wire);
  REQUIRE(read);
  CHECK(read->floats()[0] == 4.0f);
  CHECK(read->floats()[1] == 5.0f);
  CHECK(layout.to_wire(codec, 0, 1, payload::size_only(8)).size() == 4);
  CHECK(layout.wire_bytes(codec, 0) == 12);
  CHECK(layout.wire_bytes(nullptr, 0) == 24);
}

TEST_CASE("a line is busy with the slices and means that its member sends and gets") {
  const part_layout layout({0, 1000, 2000, 2000}, 4096, false);
  std::vector<member_info> members(3);
  for (auto& member : members) member.weight = 1, member.rate_up = member.rate_down = 8000;
  members[0].rate_up = 4000;
  const auto times = line_times(layout, members, {}, 1h);
  REQUIRE(times.size() == 3);
  // Member 0 sends a slice of 4000 bytes, and its part of 4000 bytes to two members.
  CHECK(times[0] == 24s);
  // Member 1 sends three times 4000 bytes and gets as many.
  CHECK(times[1] == 12s);
  CHECK(times[2] == 0s); // an empty part
  CHECK(line_times(layout, members, {}, 5s)[1] == 5s);
}
