#include "actors/experts/trainer_record.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::actors;

TEST_CASE("a record of a trainer survives its bytes, and other bytes are no record") {
  const expert_trainer_record one{640, 2048, true};
  CHECK(expert_trainer_record::unpack(one.pack()) == one);
  CHECK_FALSE(expert_trainer_record::unpack(payload{}));
  CHECK_FALSE(expert_trainer_record::unpack(payload::size_only(24)));
  CHECK_FALSE(expert_trainer_record::unpack(payload{std::vector<std::byte>(16)}));
  CHECK_FALSE(
      expert_trainer_record::unpack(expert_trainer_record{std::uint64_t{1} << 60, 0}.pack()));
}

TEST_CASE("the samples of a swarm are those of all trainers, dead ones too") {
  swarm_samples known;
  CHECK(known.total() == 0);
  known.leased(1000);
  known.set_own(10);
  known.read(1, {20, 30, false});
  known.read(2, {5, 30, false});
  known.read_all();
  CHECK(known.total() == 35);
  // Trainer 1 has died: its record is gone, and its samples stay.
  known.read(2, {25, 50, false});
  known.read_all();
  CHECK(known.total() == 55);
}

TEST_CASE("a newcomer counts the samples of trainers that it never met") {
  swarm_samples known;
  known.read(2, {40, 100, false});
  known.read_all();
  CHECK(known.total() == 100);
  known.leased(1000);
  known.set_own(8);
  CHECK(known.total() == 108);
  known.read(2, {48, 112, false});
  known.read_all();
  CHECK(known.total() == 116);
}

TEST_CASE("a host that trains nothing takes the median count of the records") {
  swarm_samples known;
  known.read(1, {4, 4, false});
  known.read_all();
  known.read(2, {16, 96, false});
  known.read_all();
  CHECK(known.total() == 96);
  known.read(1, {8, 104, false});
  known.read(2, {16, 104, false});
  known.read(3, {std::uint64_t{1} << 48, std::uint64_t{1} << 48, false});
  known.read_all();
  CHECK(known.total() == 104);
}

TEST_CASE("a false record ends no run: a trainer counts no more samples than were leased") {
  swarm_samples known;
  known.read(1, {std::uint64_t{1} << 48, 0, false});
  known.read_all();
  CHECK(known.total() == 0);
  known.leased(64);
  known.set_own(8);
  CHECK(known.total() == 64);
  known.leased(48); // a lost lease that came back
  CHECK(known.total() == 64);
}
