#include "actors/data/sample_ledger.hpp"
#include "actors/data/sample_ranges.hpp"
#include "kernels/base/rng.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

using namespace shoal;
using namespace shoal::actors;
using namespace std::chrono_literals;

namespace {

using list = std::vector<sample_range>;
using kind = index_state::kind;
constexpr group_id g1{1, 1}, g2{2, 2};

std::vector<std::uint64_t> indices(const list& ranges) {
  std::vector<std::uint64_t> out;
  for (const auto& r : ranges)
    for (auto i = r.first; i < r.end(); ++i) out.push_back(i);
  return out;
}

} // namespace

TEST_CASE("indices are leased in order, and returned ones come first") {
  sample_ledger ledger{10s};
  CHECK(ledger.lease(1, 4, 0s) == list{{0, 4}});
  CHECK(ledger.lease(2, 4, 0s) == list{{4, 4}});
  CHECK(ledger.give_back(2, list{{6, 2}}).returned == list{{6, 2}});
  CHECK(ledger.give_back(1, list{{1, 1}}).returned == list{{1, 1}});
  CHECK(ledger.lease(3, 4, 0s) == list{{1, 1}, {6, 3}});
  CHECK(ledger.high_water() == 9);
  CHECK(ledger.lease(3, 0, 0s).empty());
  const auto block = static_cast<std::uint32_t>(index_block_size);
  CHECK_FALSE(ledger.exhausted());
  CHECK(ledger.lease(4, block - 16, 0s) == list{{9, block - 16}}); // no loop over indices
  CHECK(ledger.lease(5, 0xffff'ffffu, 0s) == list{{block - 7, 7}});
  CHECK(ledger.exhausted());
  CHECK(ledger.lease(5, 0xffff'ffffu, 0s).empty());
}

TEST_CASE("leases expire at their time unless they are renewed") {
  sample_ledger ledger{10s};
  ledger.lease(1, 4, 0s);
  ledger.lease(2, 2, 1s);
  CHECK(ledger.next_expiry() == 10s);
  const auto renewal = ledger.renew(1, list{{0, 2}}, 5s);
  CHECK(renewal.renewed == list{{0, 2}});
  CHECK(ledger.expire(10s - 1ns).empty());
  auto lost = ledger.expire(11s);
  REQUIRE(lost.size() == 2);
  CHECK(lost[0].peer == 1);
  CHECK(lost[0].ranges == list{{2, 2}});
  CHECK(lost[1].peer == 2);
  CHECK(lost[1].ranges == list{{4, 2}});
  CHECK(ledger.leased_by(1) == 2);
  CHECK(ledger.next_expiry() == 15s);

  const auto late = ledger.renew(2, list{{4, 3}}, 12s);
  CHECK(late.renewed.empty());
  CHECK(late.lost == list{{4, 2}});
  CHECK(late.unknown == list{{6, 1}});                               // never issued
  CHECK(ledger.renew(2, list{{0, 2}}, 12s).unknown == list{{0, 2}}); // another peer's lease
}

TEST_CASE("a commit is idempotent, whichever members send it and how often") {
  sample_ledger ledger{10s};
  ledger.lease(1, 8, 0s);
  CHECK(ledger.commit(1, list{{0, 4}}, 1, g1, 3, 3).committed == list{{0, 4}});
  CHECK(ledger.commit(1, list{{4, 2}}, 1, g1, 2, 3).partial == list{{4, 2}});
  CHECK(ledger.commit(1, list{{6, 2}}, 1, g1, 0, 3).returned == list{{6, 2}});
  for (int i = 0; i < 3; ++i) {
    CHECK(ledger.commit(1, list{{0, 4}}, 1, g1, 3, 3).already == list{{0, 4}});
    CHECK(ledger.commit(1, list{{4, 2}}, 1, g1, 2, 3).already == list{{4, 2}});
    CHECK(ledger.commit(1, list{{6, 2}}, 1, g1, 0, 3).already == list{{6, 2}});
  }
  CHECK(ledger.reports().empty());
  CHECK_FALSE(ledger.has_leases());
  // A member that saw other parts reports differently. The first report stands.
  CHECK(ledger.commit(1, list{{0, 4}}, 1, g1, 2, 3).disputed == list{{0, 4}});
  CHECK(ledger.commit(1, list{{0, 4}}, 1, g1, 2, 3).disputed.empty());
  CHECK(ledger.reported(sample_ledger::report::kind::disputed) == 4);
  CHECK(ledger.count(kind::committed) == 4);
  CHECK(ledger.count(kind::partial) == 2);
  CHECK(ledger.count(kind::returned) == 2);
}

TEST_CASE("the survivors of a round commit for a dead member whose lease has ended") {
  sample_ledger ledger{10s};
  ledger.lease(1, 4, 0s);
  ledger.expire(10s);
  const auto result = ledger.commit(1, list{{0, 4}}, 1, g1, 1, 1);
  CHECK(result.committed == list{{0, 4}});
  CHECK(result.repeated.empty());
  CHECK(ledger.lease(2, 2, 11s) == list{{4, 2}}); // not leased again
}

TEST_CASE("a commit takes indices from another lease, and each double use is reported") {
  sample_ledger ledger{10s};
  ledger.lease(1, 4, 0s);
  ledger.expire(10s);
  CHECK(ledger.lease(2, 6, 11s) == list{{0, 6}});
  const auto result = ledger.commit(1, list{{0, 4}}, 1, g1, 1, 1);
  CHECK(result.committed == list{{0, 4}});
  CHECK(result.repeated == list{{0, 4}});
  REQUIRE(result.revoked.size() == 1);
  CHECK(result.revoked[0].peer == 2);
  CHECK(result.revoked[0].ranges == list{{0, 4}});
  CHECK(ledger.leased_by(2) == 2);
  CHECK(ledger.commit(1, list{{0, 4}}, 1, g1, 1, 1).already == list{{0, 4}});

  // Peer 2 had used them before it heard of the commit.
  const auto second = ledger.commit(2, list{{0, 6}}, 2, g2, 1, 1);
  CHECK(second.committed == list{{4, 2}});
  CHECK(second.repeated == list{{0, 4}});
  CHECK(ledger.commit(2, list{{0, 6}}, 2, g2, 1, 1).repeated.empty());
  CHECK(ledger.reported(sample_ledger::report::kind::repeated) == 8);
}

TEST_CASE("a peer cannot commit or return indices that it never had") {
  sample_ledger ledger{10s};
  ledger.lease(1, 4, 0s);
  CHECK(ledger.commit(2, list{{0, 4}}, 1, g1, 1, 1).unknown == list{{0, 4}});
  CHECK(ledger.commit(1, list{{2, 6}}, 1, g1, 1, 1).unknown == list{{4, 4}});
  CHECK(ledger.count(kind::committed) == 2);
  CHECK(ledger.give_back(2, list{{0, 4}}).unknown == list{{0, 4}});
  const auto own = ledger.give_back(1, list{{0, 4}});
  CHECK(own.returned == list{{0, 2}});
  CHECK(own.stale == list{{2, 2}});
  CHECK(ledger.give_back(1, list{{0, 4}}).stale == list{{0, 4}});
  CHECK(ledger.commit(1, list{{1'000'000'000'000, 0xffff'ffffu}}, 1, g1, 1, 1).unknown ==
        list{{1'000'000'000'000, 0xffff'ffffu}});
  CHECK(ledger.high_water() == 4);
}

namespace {

// The same rules for single indices.
struct naive_ledger {
  struct index {
    index_state state;
    std::set<peer_id> former;
    std::set<std::pair<group_id, peer_id>> repeated, disputed;
  };
  duration lease_time;
  std::vector<index> all;

  list lease(peer_id peer, std::uint32_t count, duration now) {
    list out;
    index_state leased;
    leased.state = kind::leased;
    leased.peer = peer;
    leased.expires = now + lease_time;
    for (std::uint64_t i = 0; i < all.size() && count > 0; ++i)
      if (all[i].state.state == kind::returned) {
        all[i].state = leased;
        append_range(out, i, i + 1);
        --count;
      }
    for (; count > 0; --count) {
      append_range(out, all.size(), all.size() + 1);
      all.push_back({leased, {}, {}, {}});
    }
    return out;
  }
  bool leases(std::uint64_t i, peer_id peer) const {
    return all[i].state.state == kind::leased && all[i].state.peer == peer;
  }
  bool owned(std::uint64_t i, peer_id peer) const {
    const auto& s = all[i].state;
    return (s.state != kind::returned && s.peer == peer) || all[i].former.count(peer) > 0;
  }
  void release(std::uint64_t i) {
    all[i].former.insert(all[i].state.peer);
    all[i].state = {};
  }
};

} // namespace

TEST_CASE("the ledger agrees with a model of single indices over random operations") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    auto random = stream(seed, "sample_ledger_test");
    sample_ledger ledger{100ns};
    naive_ledger model{100ns, {}};
    duration now{};
    for (int step = 0; step < 250; ++step) {
      CAPTURE(step);
      now += duration{random.below(15)};
      const auto peer = 1 + random.below(4);
      // One to three disjoint ranges, sometimes beyond the issued indices.
      list ranges;
      std::uint64_t from = random.below(model.all.size() + 2);
      const auto pieces = 1 + random.below(3);
      for (std::uint64_t i = 0; i < pieces; ++i) {
        const auto count = 1 + random.below(8);
        append_range(ranges, from, from + count);
        from += count + random.below(6);
      }
      const auto operation = random.below(10);
      if (operation < 3) {
        const auto count = static_cast<std::uint32_t>(random.below(12));
        REQUIRE(ledger.lease(peer, count, now) == model.lease(peer, count, now));
      } else if (operation < 4) {
        const auto got = ledger.renew(peer, ranges, now);
        list renewed, lost, unknown;
        for (auto i : indices(ranges)) {
          if (i >= model.all.size() || !model.owned(i, peer)) {
            append_range(unknown, i, i + 1);
          } else if (model.leases(i, peer)) {
            model.all[i].state.expires = now + 100ns;
            append_range(renewed, i, i + 1);
          } else if (model.all[i].state.state == kind::returned ||
                     model.all[i].state.peer != peer) {
            append_range(lost, i, i + 1);
          }
        }
        REQUIRE(got.renewed == renewed);
        REQUIRE(got.lost == lost);
        REQUIRE(got.unknown == unknown);
      } else if (operation < 5) {
        const auto got = ledger.give_back(peer, ranges);
        list returned, stale, unknown;
        for (auto i : indices(ranges)) {
          if (i >= model.all.size() || !model.owned(i, peer)) {
            append_range(unknown, i, i + 1);
          } else if (model.leases(i, peer)) {
            model.release(i);
            append_range(returned, i, i + 1);
          } else {
            append_range(stale, i, i + 1);
          }
        }
        REQUIRE(got.returned == returned);
        REQUIRE(got.stale == stale);
        REQUIRE(got.unknown == unknown);
      } else if (operation < 6) {
        std::map<peer_id, list> expected;
        for (std::uint64_t i = 0; i < model.all.size(); ++i)
          if (model.all[i].state.state == kind::leased && model.all[i].state.expires <= now) {
            append_range(expected[model.all[i].state.peer], i, i + 1);
            model.release(i);
          }
        const auto got = ledger.expire(now);
        REQUIRE(got.size() == expected.size());
        for (const auto& loss : got) REQUIRE(expected.at(loss.peer) == loss.ranges);
      } else {
        const auto epoch = 1 + random.below(5);
        const group_id group{epoch, epoch};
        const auto included = static_cast<std::uint32_t>(random.below(4));
        const auto got = ledger.commit(peer, ranges, epoch, group, included, 3);
        index_state to{
            included == 3 ? kind::committed : kind::partial, peer, {}, epoch, group, included, 3};
        list committed, partial, returned, already, repeated, disputed, unknown;
        std::uint64_t revoked = 0;
        for (auto i : indices(ranges)) {
          if (i >= model.all.size() || !model.owned(i, peer)) {
            append_range(unknown, i, i + 1);
            continue;
          }
          auto& x = model.all[i];
          const bool is_final = x.state.state == kind::committed || x.state.state == kind::partial;
          if (is_final && x.state.peer == peer && x.state.group == group) {
            if (x.state.parts_included == included)
              append_range(already, i, i + 1);
            else if (x.disputed.insert({group, peer}).second)
              append_range(disputed, i, i + 1);
          } else if (included == 0) {
            if (model.leases(i, peer)) {
              model.release(i);
              append_range(returned, i, i + 1);
            } else {
              append_range(already, i, i + 1);
            }
          } else if (is_final) {
            if (x.repeated.insert({group, peer}).second) append_range(repeated, i, i + 1);
          } else {
            if (x.state.state == kind::leased && x.state.peer != peer) {
              if (x.repeated.insert({group, peer}).second) append_range(repeated, i, i + 1);
              ++revoked;
              model.release(i);
            }
            x.state = to;
            append_range(included == 3 ? committed : partial, i, i + 1);
          }
        }
        REQUIRE(got.committed == committed);
        REQUIRE(got.partial == partial);
        REQUIRE(got.returned == returned);
        REQUIRE(indices(got.already) == indices(already));
        REQUIRE(got.repeated == repeated);
        REQUIRE(got.disputed == disputed);
        REQUIRE(got.unknown == unknown);
        std::uint64_t taken = 0;
        for (const auto& loss : got.revoked) {
          REQUIRE(loss.peer != peer);
          taken += index_count(loss.ranges);
        }
        REQUIRE(taken == revoked);
      }

      // Every issued index is in exactly one state, which is the right one.
      REQUIRE(ledger.high_water() == model.all.size());
      std::uint64_t next = 0;
      std::array<std::uint64_t, 4> counts{};
      std::map<peer_id, std::uint64_t> leased;
      duration soonest = duration::max();
      for (const auto& row : ledger.snapshot()) {
        REQUIRE(row.first == next);
        for (; next < row.first + row.count; ++next) REQUIRE(model.all[next].state == row.state);
        counts[static_cast<std::size_t>(row.state.state)] += row.count;
        if (row.state.state == kind::leased) {
          leased[row.state.peer] += row.count;
          soonest = std::min(soonest, row.state.expires);
        }
      }
      REQUIRE(next == model.all.size());
      for (auto k : {kind::leased, kind::returned, kind::committed, kind::partial})
        REQUIRE(ledger.count(k) == counts[static_cast<std::size_t>(k)]);
      for (peer_id p = 1; p <= 4; ++p) REQUIRE(ledger.leased_by(p) == leased[p]);
      REQUIRE(ledger.has_leases() == (soonest != duration::max()));
      if (ledger.has_leases()) REQUIRE(ledger.next_expiry() == soonest);
    }
  }
}
