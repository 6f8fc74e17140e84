// actors/pipeline/known_trainers: how long a stage waits for trainers that close no batch.
#include "actors/pipeline/known_trainers.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>

using namespace shoal;
using namespace shoal::actors;
using namespace std::chrono_literals;

namespace {

void tell(known_trainers& known, peer_id whom, std::uint64_t closed, std::uint64_t samples = 8) {
  known.told(whom, {whom, whom}, {closed, samples, 1, {}});
}

} // namespace

TEST_CASE("a batch is closed when all trainers have closed it, and needs a trainer with a batch") {
  known_trainers known(60s);
  known.begin_batch(0s);
  CHECK(!known.is_closed(3, 1s));
  tell(known, 1, no_batch_yet);
  CHECK(!known.is_closed(3, 1s));
  tell(known, 2, 3);
  CHECK(!known.is_closed(3, 1s));
  tell(known, 2, 4);
  CHECK(known.is_closed(3, 1s));
  CHECK(known.samples(3, 6) == 6); // no claim is larger than a batch
}

TEST_CASE("a trainer that closes no batch is waited for less and less") {
  known_trainers known(60s);
  duration start = 100s;
  for (const duration wait : {60s, 30s, 15s}) {
    CAPTURE(wait.count());
    known.begin_batch(start);
    tell(known, 1, 3);
    tell(known, 2, 3);
    tell(known, 7, 0);
    CHECK(!known.is_closed(3, start + 5s));
    CHECK(!known.due()); // nobody has closed it
    tell(known, 1, 4);
    tell(known, 2, 4);
    CHECK(!known.is_closed(3, start + 10s));
    CHECK(known.due() == start + 10s + wait);
    CHECK(!known.is_closed(3, start + 9s + wait));
    CHECK(known.is_closed(3, start + 10s + wait));
    known.stepped(3);
    start += 100s;
  }
  // Batches that the trainer closes in time restore its wait.
  for (int batch = 0; batch < 3; ++batch) {
    known.begin_batch(start);
    for (const peer_id each : {1, 2, 7}) tell(known, each, 4);
    CHECK(known.is_closed(3, start));
    known.stepped(3);
  }
  tell(known, 7, 3);
  CHECK(!known.is_closed(3, start + 10s));
  CHECK(known.due() == start + 70s);
}

TEST_CASE("where batches take long, a trainer has as long as the others took") {
  known_trainers known(60s);
  known.begin_batch(0s);
  tell(known, 1, 4);
  tell(known, 2, 3);
  CHECK(!known.is_closed(3, 500s));
  CHECK(known.due() == 1000s);
}

TEST_CASE("a trainer opens a closed batch again a few times and no more") {
  known_trainers known(60s);
  known.begin_batch(0s);
  duration now = 10s;
  tell(known, 1, 4);
  for (unsigned i = 0; i < 10; ++i) {
    tell(known, 7, 4);
    CHECK(known.is_closed(3, now));
    tell(known, 7, 3);
    now += 50s;
    known.is_closed(3, now);
  }
  CHECK(known.is_closed(3, now + 60s));
}

TEST_CASE("nodes of one member are one trainer") {
  known_trainers known(60s);
  known.begin_batch(0s);
  tell(known, 1, 4);
  for (const peer_id node : {7, 8, 9}) known.told(node, {7, 7}, {0, 8, 1, {}});
  CHECK(!known.is_closed(3, 10s));
  CHECK(known.due() == 70s);
}
