#include "kernels/base/payload.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

using namespace shoal;

TEST_CASE("a payload takes over its buffer without copying") {
  std::vector<float> values = {1, 2, 3};
  const float* where = values.data();
  const payload p(std::move(values));
  CHECK(p.size() == 12);
  CHECK(p.floats().data() == where);
  CHECK(p.floats()[2] == 3);
  const payload copy = p;
  CHECK(copy.same_memory(p));
  CHECK(copy.bytes().data() == p.bytes().data());

  const payload raw(std::vector<std::byte>{std::byte{1}, std::byte{2}});
  CHECK(raw.size() == 2);
  CHECK(raw.bytes()[1] == std::byte{2});
  CHECK_FALSE(raw.same_memory(p));
}

TEST_CASE("bytes that were read from elsewhere show the floats that were written") {
  const std::vector<float> values = {0.5F, -1e30F};
  std::vector<std::byte> bytes(8);
  std::memcpy(bytes.data(), values.data(), 8);
  const payload p(std::move(bytes));
  CHECK(p.floats()[0] == 0.5F);
  CHECK(p.floats()[1] == -1e30F);
}

TEST_CASE("payloads are equal by their bytes, and size-only ones by their size") {
  const payload a(std::vector<float>{1, 2}), same(std::vector<float>{1, 2}),
      other(std::vector<float>{1, 3});
  CHECK(a == same);
  CHECK(a != other);
  CHECK(a != a.slice(0, 4));
  CHECK(payload::size_only(8) == payload::size_only(8));
  CHECK(payload::size_only(8) != payload::size_only(4));
  CHECK(payload::size_only(8) != a);
  CHECK(a != payload::size_only(8));
  CHECK(payload{} == a.slice(8, 0));
}

TEST_CASE("a slice shares memory and outlives the payload from which it was cut") {
  payload slice;
  {
    const payload whole(std::vector<float>{1, 2, 3, 4});
    slice = whole.slice(4, 8);
    CHECK(slice.floats().data() == whole.floats().data() + 1);
    CHECK(whole.slice(0, 16).same_memory(whole));
    CHECK(whole.slice(16, 0).empty());
  }
  CHECK(slice.size() == 8);
  CHECK(slice.floats()[0] == 2);
  CHECK(slice.slice(4, 4).floats()[0] == 3);
}

TEST_CASE("a size-only payload has a size and nothing else") {
  const payload size_only = payload::size_only(1'000'000'000'000);
  CHECK(size_only.size() == 1'000'000'000'000);
  CHECK(size_only.is_size_only());
  CHECK_FALSE(size_only.empty());
  CHECK(size_only.slice(5, 10).is_size_only());
  CHECK(size_only.slice(5, 10).size() == 10);
  CHECK(size_only.slice(5, 10).same_memory(payload::size_only(10)));
}

TEST_CASE("an empty payload is not size-only") {
  for (const payload& p :
       {payload(), payload(std::vector<std::byte>{}), payload(std::vector<float>{}),
        payload::size_only(0), payload::size_only(3).slice(1, 0)}) {
    CHECK(p.empty());
    CHECK_FALSE(p.is_size_only());
    CHECK(p.bytes().empty());
    CHECK(p.floats().empty());
    CHECK(p.slice(0, 0).empty());
  }
}
