// actors/pipeline/pipeline_record: the bytes of a pipeline's records in the DHT.
#include "actors/pipeline/pipeline_record.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

using namespace shoal;
using namespace shoal::actors;

namespace {

template <class Record>
void check_bytes_of(const Record& one) {
  const auto bytes = one.pack();
  CHECK(Record::unpack(bytes) == one);
  const auto all = bytes.bytes();
  CHECK(!Record::unpack(payload(std::vector<std::byte>(all.begin(), all.end() - 1))));
  CHECK(!Record::unpack(payload::size_only(bytes.size())));
  CHECK(!Record::unpack({}));
}

} // namespace

TEST_CASE("records of a pipeline are read as they were written, and other bytes are refused") {
  check_bytes_of(stage_record{3, 17, {1, 2}, 64, 500'000, true, {3, 4}});
  check_bytes_of(stage_summary{3, 17, 125, 500'000});
  check_bytes_of(trainer_record{17, 64, 9, {}});
  check_bytes_of(trainer_record{17, 64, 9, {0, 5, 4095}});
}

TEST_CASE("a record of a stage that no pipeline has is refused") {
  CHECK(!stage_record::unpack(stage_record{5000, 0, {}, 0, 0, false, {}}.pack()));
  CHECK(!stage_summary::unpack(stage_summary{5000, 0, 1, 0}.pack()));
}
