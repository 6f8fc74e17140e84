#include "actors/experts/expert_hosts.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::actors;
using namespace std::chrono_literals;

namespace {

constexpr std::int64_t second = 1'000'000'000;

} // namespace

TEST_CASE("a record of a host without an entry counts until it expires") {
  const expert_hosts hosts;
  CHECK(hosts.counts(1, 10 * second, 9 * second, 0s));
  CHECK_FALSE(hosts.counts(1, 10 * second, 10 * second, 0s));
}

TEST_CASE("a host that failed or is silent gets nothing for a while") {
  expert_hosts hosts({.ban = 15s});
  const auto counts = [&](duration now) { return hosts.counts(1, 99 * second, second, now); };
  hosts.failed(1, 0s);
  CHECK_FALSE(counts(14s));
  CHECK(counts(15s));
  hosts.failed(1, 0s, 4);
  hosts.failed(1, 10s); // a short ban ends no long one
  CHECK_FALSE(counts(59s));
  CHECK(counts(60s));
  hosts.silent(1);
  CHECK_FALSE(counts(60s));
  hosts.heard(1);
  CHECK(counts(60s));
  hosts.heard(2);
  CHECK(hosts.size() == 1);
}

TEST_CASE("a host that is gone comes back with a later record and a dead one after a lifetime") {
  expert_hosts hosts({.record_lifetime = 60s});
  const auto utc = 100 * second;
  hosts.silent(1);
  hosts.gone(1, utc);
  CHECK_FALSE(hosts.counts(1, utc + 60 * second, utc, 0s));
  CHECK(hosts.counts(1, utc + 61 * second, utc, 0s));
  hosts.died(2, utc);
  CHECK_FALSE(hosts.counts(2, utc + 9'999 * second, utc + 60 * second, 0s));
  CHECK(hosts.counts(2, utc + 9'999 * second, utc + 61 * second, 0s));
}

TEST_CASE("the offers of a host that has won do not count until the expert has a host") {
  expert_hosts hosts;
  const expert_id one{0, {1}}, other{0, {2}};
  hosts.won(7, one);
  CHECK(hosts.has_won(7, one));
  CHECK_FALSE(hosts.has_won(7, other));
  CHECK_FALSE(hosts.has_won(8, one));
  hosts.won(7, other);
  hosts.forget_offers(one);
  CHECK_FALSE(hosts.has_won(7, one));
  CHECK(hosts.has_won(7, other));
}

TEST_CASE("entries that say nothing any more are dropped and no answer changes by that") {
  expert_hosts hosts({.ban = 15s, .record_lifetime = 60s});
  hosts.failed(1, 0s);
  hosts.gone(2, 0);
  hosts.died(3, 0);
  hosts.silent(4);
  hosts.won(5, {0, {1}});
  for (int now = 0; now <= 70; ++now) {
    auto dropped = hosts;
    dropped.drop_old(now * second, std::chrono::seconds(now));
    for (peer_id host = 1; host <= 5; ++host)
      for (int ends = 1; ends < 200; ++ends)
        for (const int later : {0, 1, 30}) {
          const auto counts = [&](const expert_hosts& table) {
            return table.counts(host, ends * second, (now + later) * second,
                                std::chrono::seconds(now + later));
          };
          CHECK(counts(dropped) == counts(hosts));
        }
    CHECK(dropped.has_won(5, {0, {1}}));
  }
  hosts.drop_old(70 * second, 70s);
  CHECK(hosts.size() == 2);
}
