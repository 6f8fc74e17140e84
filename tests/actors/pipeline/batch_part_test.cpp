// actors/pipeline/batch_part: the samples of a trainer's micro-batches.
#include "actors/pipeline/batch_part.hpp"

#include <doctest/doctest.h>

#include <map>
#include <utility>
#include <vector>

using namespace shoal;
using namespace shoal::actors;
using kind = micro_batch::task_kind;
using ranges = std::vector<sample_range>;

namespace {

/// A micro-batch of two hops that has counted in `counted` of them.
micro_batch counted(std::uint64_t number, std::uint64_t samples, int counted) {
  micro_batch out(number, 2, payload::size_only(1), samples);
  for (auto due = out.due(); !due.empty() && counted > 0; due = out.due()) {
    const auto next = due.front();
    out.sent(next, 5);
    REQUIRE(out.answered(next, 5, payload::size_only(1)));
    if (next.kind != kind::backward) continue;
    REQUIRE(out.counted(next.hop, 5));
    --counted;
  }
  return out;
}

} // namespace

TEST_CASE("a part knows how many of its samples are taken and left") {
  batch_part part(100, 107);
  CHECK(part.size() == 7);
  part.add(1, 4, {{20, 4}});
  CHECK(part.next() == 104);
  CHECK(part.taken() == 4);
  CHECK(part.left() == 3);
  part.set_loss(1, 2.5);
  part.set_loss(2, 0.5);
  CHECK(part.loss(1) == 2.5);
  CHECK(part.loss(3) == 0);
  CHECK(part.loss_sum() == 3);
}

TEST_CASE("a micro-batch that counts again after a loss is reported once") {
  batch_part part(0, 4);
  part.add(1, 4, {{20, 4}});
  CHECK(part.trained(1) == ranges{{20, 4}});
  CHECK(part.trained(1).empty());
}

TEST_CASE("samples whose lease was lost are reported no more") {
  batch_part part(0, 8);
  part.add(1, 4, {{20, 4}});
  part.add(2, 4, {{24, 4}});
  part.drop(ranges{{22, 3}});
  CHECK(part.trained(1) == ranges{{20, 2}});
  CHECK(part.trained(2) == ranges{{25, 3}});
  part.drop(ranges{{0, 100}});
  CHECK(part.by_hops({}).empty());
}

TEST_CASE("samples are committed by the number of hops in which they have counted") {
  batch_part part(0, 12);
  std::map<std::uint64_t, micro_batch> all;
  const int hops[] = {2, 1, 2};
  for (std::uint64_t number = 1; number <= 3; ++number) {
    part.add(number, 4, {{number * 4, 4}});
    part.set_loss(number, static_cast<double>(number));
    all.emplace(number, counted(number, 4, hops[number - 1]));
  }
  const auto shares = part.by_hops(all);
  REQUIRE(shares.size() == 2);
  CHECK(shares.at(1).samples == ranges{{8, 4}});
  CHECK(shares.at(2).samples == ranges{{4, 4}, {12, 4}});
  CHECK(shares.at(2).count == 8);
  CHECK(shares.at(2).loss_sum == 4);
}
