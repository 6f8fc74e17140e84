// actors/pipeline/sent_tasks: silence, and the course of the slowest micro-batch.
#include "actors/pipeline/sent_tasks.hpp"
#include "kernels/learn/even_cut.hpp"
#include "tests/actors/pipeline/five_layers.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <memory>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;
using kind = micro_batch::task_kind;

namespace {

sent_tasks two_stages() {
  return {stage_model::make(five_layers(), learn::even_cut(5, 2), read_batch).value(), 30s, 75s};
}

const micro_batch::task forward{kind::forward, 0}, backward{kind::backward, 0};

} // namespace

TEST_CASE("a peer is silent when its last try of a task is over") {
  auto sent = two_stages();
  const auto first = sent.send(1, forward, 7, 0s);
  CHECK(first.wait == 30s);
  CHECK(sent.send(1, backward, 7, 0s).wait == 75s);
  CHECK(!sent.silent(first.token, 29s));
  const auto second = sent.send(1, forward, 8, 20s);
  CHECK(second.token == first.token);
  CHECK(!sent.silent(first.token, 30s));
  const auto late = sent.silent(second.token, 50s);
  REQUIRE(late);
  CHECK(late->peer == 8);
  CHECK(late->number == 1);
  sent.drop(1, forward, 7); // another peer has the task now
  CHECK(sent.silent(second.token, 50s));
  sent.drop(1, forward, 8);
  CHECK(!sent.silent(second.token, 50s));
}

TEST_CASE("where all answers take long, a peer has five times their mean") {
  auto sent = two_stages();
  sent.send(1, forward, 7, 0s);
  sent.answered(1, forward, 7, 1s, 20s);
  CHECK(sent.timeout_of(forward) == 100s);
  CHECK(sent.timeout_of(backward) == 75s);
  // A clear batch leaves the mean.
  sent.clear();
  CHECK(sent.timeout_of(forward) == 100s);
  // A stage without an answer has the mean of the others.
  CHECK(sent.timeout_of({kind::forward, 1}) == 100s);
}

TEST_CASE("the tasks of a peer that is gone end together") {
  auto sent = two_stages();
  sent.send(1, forward, 7, 0s);
  sent.send(2, forward, 8, 0s);
  sent.send(3, forward, 7, 0s);
  const auto gone = sent.drop_all_of(7);
  REQUIRE(gone.size() == 2);
  CHECK(gone[0].number == 1);
  CHECK(gone[1].number == 3);
  CHECK(sent.drop_all_of(7).empty());
  CHECK(sent.drop_all_of(8).size() == 1);
}

TEST_CASE("the slowest micro-batch has all its answers and the tries of each") {
  auto sent = two_stages();
  for (std::uint64_t number = 1; number <= 2; ++number) {
    const micro_batch which(number, 2, payload::size_only(1), 4);
    sent.send(number, forward, 7, 10s);
    if (number == 2) sent.send(number, forward, 8, 12s);
    sent.answered(number, forward, 8, 1s, 15s);
    sent.done(which, 3, number == 2 ? 19s : 16s);
  }
  const auto slowest = sent.take_slowest();
  REQUIRE(slowest);
  CHECK(slowest->number == 2);
  CHECK(slowest->epoch == 3);
  CHECK(slowest->samples == 4);
  CHECK(slowest->begun == 10s);
  CHECK(slowest->done == 19s);
  REQUIRE(slowest->tasks.size() == 1);
  CHECK(slowest->tasks[0].sent == 12s);
  CHECK(slowest->tasks[0].answered == 15s);
  CHECK(slowest->tasks[0].computed == 1s);
  CHECK(slowest->tasks[0].tries == 2);
  CHECK(!sent.take_slowest());
}
