// Compares the models with stored times of packets. The tests hold the claims of docs/accuracy.md.
#include "tests/accuracy/compare.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::accuracy;

namespace {

const std::filesystem::path data = SHOAL_ACCURACY_DATA;

} // namespace

TEST_CASE("the tcp model is within 10 % of ns-3 on its six calibration patterns") {
  const auto rows = compare(data / "calibration", "ns3-newreno", netem::ns3_newreno());
  REQUIRE(rows.size() == 6);
  for (const auto& row : rows) {
    CAPTURE(row.name);
    CHECK(std::abs(row.error(row.tcp)) < 0.10);
    CHECK(row.tcp.last > row.max_min.last);
  }
}

TEST_CASE(
    "the tcp model is nearer to ns-3 than SimGrid's default model on patterns that it never saw") {
  const auto rows = compare(data / "blind", "ns3-newreno", netem::ns3_newreno());
  REQUIRE(rows.size() >= 10);
  const auto tcp = summarize(rows, &comparison::tcp), lv08 = summarize(rows, &comparison::lv08);
  CHECK(tcp.mean < lv08.mean);
  CHECK(tcp.mean_flow < lv08.mean_flow);
}

TEST_CASE("the tcp model with its defaults is near a real kernel's TCP") {
  const auto rows = compare(data / "linux", "linux", {});
  REQUIRE(rows.size() == 10);
  std::size_t near = 0;
  for (const auto& row : rows) near += std::abs(row.error(row.tcp)) < 0.12 ? 1 : 0;
  CHECK(near >= 9);
  CHECK(summarize(rows, &comparison::tcp).mean < summarize(rows, &comparison::lv08).mean);
}

TEST_CASE("the tcp model is near a real kernel whose hosts push back") {
  const auto rows = compare(data / "linux", "linux-host", {}, true);
  REQUIRE(rows.size() == 8);
  for (const auto& row : rows) {
    CAPTURE(row.name);
    CHECK(std::abs(row.error(row.tcp)) < 0.12);
  }
  CHECK(summarize(rows, &comparison::tcp).mean < 0.05);
}

TEST_CASE("small messages behind bulk wait about as long as in a real kernel") {
  const auto rows = compare_probes(data / "probes");
  REQUIRE(rows.size() == 4);
  for (const auto& row : rows) {
    CAPTURE(row.name);
    CAPTURE(row.queue);
    // A queue of 1000 packets does not fill up within the flows, and two runs differ by a sixth.
    CHECK(std::abs(row.error()) < (row.queue == 100 ? 0.16 : 0.35));
  }
}

TEST_CASE("lv08 is SimGrid's formula for one flow") {
  // SimGrid's documentation: 100 kB over 1 Mbit and 10 ms take 0.01 * 13.01 + 800000 / (0.97e6 /
  // 1.05) = 0.996079 s. The 5 % are for the way back over the same link.
  netem::transport net(netem::transfer_model::lv08);
  const netem::link_id link[] = {net.add_link(1e6)};
  const netem::link_id back[] = {net.add_link(1e6)};
  netem::transfer_request what;
  what.path = link;
  what.way_back = back;
  what.delay = std::chrono::milliseconds(10);
  what.bytes = 100'000;
  net.start(what, {});
  std::vector<netem::finished_transfer> done;
  while (const auto next = net.next_event()) net.advance(*next, done);
  REQUIRE(done.size() == 1);
  CHECK(to_seconds(done[0].at) == doctest::Approx(0.01 * 13.01 + 800000 / 0.97e6).epsilon(1e-9));
}
