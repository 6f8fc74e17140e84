#include "scenarios/observe/peer_table.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::scenarios;
using namespace std::chrono_literals;

TEST_CASE("a peer ends once and its next incarnation is another peer") {
  peer_table peers;
  CHECK(peers.name_of(0x3f) == "peer 3f");
  CHECK_FALSE(peers.ended(1s, 1, "killed"));
  peers.started(2, {"home-0", 5, 1, 3s});
  peers.started(1, {"home-0", 5, 0, 0s});
  CHECK(peers.ended(2s, 1, "left"));
  CHECK_FALSE(peers.ended(4s, 1, "killed"));
  CHECK(peers.joined() == 2);
  CHECK(peers.left() == 1);
  CHECK(peers.alive() == 1);
  CHECK(peers.name_of(1) == "home-0");
  CHECK(peers.csv() == "id,name,machine,incarnation,started_s,ended_s,reason\n"
                       "1,home-0,5,0,0.000000000,2.000000000,left\n"
                       "2,home-0,5,1,3.000000000,,\n");
}
