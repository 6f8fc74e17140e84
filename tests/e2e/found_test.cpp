// Swarms that chaos drew and that did badly, as they were drawn (results/chaos says what was
// wrong): none may do so again.
#include "tests/e2e/support/swarm.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <sstream>

using namespace shoal;
using namespace shoal::e2e;

namespace {

struct found {
  const char* seed;
  std::uint64_t epochs; ///< that it makes at least
  const char* why;
};

constexpr found all[] = {
    {"5007", 36,
     "with overlap who had given something followed those who had not, and its samples were lost"},
    {"334", 34, "with overlap a step was repeated that led where nobody had gone"},
    {"906", 28,
     "with overlap those who had given something could not be reached, and those who could be had "
     "come too late"},
    {"466", 22, "three round trips are longer than matchmaking_time"},
    {"1905", 30,
     "the only addresses that a peer behind a NAT began with were of those who served nobody, and "
     "it never found those who did"},
    {"7012", 32,
     "only one behind a NAT was left with the state, and it was no donor while records of dead "
     "ones stood there"},
    {"6784", 38, "with overlap all went over by a step whose maker had died"},
    {"7799", 22, "a claim at one primary of the shard was forgotten when it met the other"},
    {"5082", 32, "averaged second moments became negative in 8 bits"},
    {"hostile-966", 45,
     "with overlap an attacker was one of three contributors, and refused each round for ever"},
    {"hostile-1411", 35,
     "with overlap nobody could download the state of the only peer that led, an attacker"},
    {"hostile-2343", 18,
     "peers doubted the claims of others that still computed, and began long jobs of their own"},
    {"btard-934", 70,
     "one secret that came late kept honest members from their audits, and they all sat out"},
    {"btard-279", 22, "hosts did not hear that a member they had banned was gone"},
    {"btard-5008", 18, "an audit of seven minutes kept a peer from its next step"},
};

} // namespace

TEST_CASE("swarms in which chaos once found something wrong do well") {
  for (const auto& one : all) {
    const auto path = fmt::format("tests/e2e/found/{}.yaml", one.seed);
    std::ifstream file(path);
    REQUIRE_MESSAGE(file, path);
    std::ostringstream text;
    text << file.rdbuf();
    const auto run = run_yaml(text.str(), one.epochs);
    CHECK_MESSAGE(run.errors.empty(), one.seed << ": " << one.why << "\n" << run.text(path));
    CHECK_MESSAGE(run.reason("not_finite") == 0, one.seed);
  }
}
