#include "actors/averaging/observations.hpp"
#include "kernels/base/rng.hpp"
#include "scenarios/record/ledger_file.hpp"
#include "scenarios/record/rounds_file.hpp"
#include "scenarios/record/verify_data.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::scenarios;
using namespace std::chrono_literals;

namespace {

using list = std::vector<sample_range>;

// A run of three rounds, as the shard sees it and, independently, as the members do.
struct run {
  sample_ledger ledger{100s};
  rounds_recorder rounds;

  // Member i of `peers` contributes ranges[i], and is missing in the last missing[i] of 4 parts.
  void round(std::uint64_t epoch, std::vector<peer_id> peers, std::vector<list> ranges,
             std::vector<std::uint32_t> missing, bool reaches_shard = true) {
    const group_id group{epoch, epoch * 1000};
    const auto members = static_cast<std::uint32_t>(peers.size());
    for (std::uint32_t i = 0; i < members; ++i) {
      contributed c;
      c.group = group;
      c.epoch = epoch;
      c.member = i;
      c.members = members;
      c.samples = ranges[i];
      rounds.observe(peers[i], c);
    }
    for (std::uint32_t i = 0; i < members; ++i) {
      round_ended e;
      e.group = group;
      e.epoch = epoch;
      e.member = i;
      e.members = members;
      e.outcome = outcome::partial;
      for (std::uint32_t p = 0; p < 4; ++p) {
        part_outcome part;
        for (std::uint32_t s = 0; s < members; ++s)
          if (p + missing[s] < 4) part.senders.push_back(s);
        e.parts.push_back(part);
      }
      rounds.observe(peers[i], e);
      for (std::uint32_t s = 0; reaches_shard && s < members; ++s)
        (void)ledger.commit(peers[s], ranges[s], epoch, group, 4 - missing[s], 4);
    }
  }
  std::string ledger_text() const {
    std::ostringstream out;
    write_ledger(out, ledger);
    return out.str();
  }
  std::string rounds_text() const {
    std::ostringstream out;
    rounds.write(out);
    return out.str();
  }
};

data_report verify(const std::string& ledger, const std::string& rounds) {
  std::istringstream l(ledger), r(rounds);
  return verify_data(l, r);
}

run three_rounds() {
  run r;
  (void)r.ledger.lease(1, 40, 0s);
  (void)r.ledger.lease(2, 40, 0s);
  (void)r.ledger.lease(3, 40, 0s);
  r.round(1, {1, 2, 3}, {{{0, 10}}, {{40, 20}}, {{80, 5}}}, {0, 0, 0});
  r.round(2, {1, 2, 3}, {{{10, 10}}, {{60, 10}}, {{85, 5}}}, {0, 1, 4});
  (void)r.ledger.give_back(1, list{{35, 5}});
  r.round(3, {1, 2}, {{{20, 10}}, {{70, 5}}}, {0, 0});
  return r;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}
std::string text_of(const std::vector<std::string>& lines) {
  std::string out;
  for (const auto& line : lines) out += line + "\n";
  return out;
}

} // namespace

TEST_CASE("a true ledger passes, and the report counts every index") {
  const auto r = three_rounds();
  const auto report = verify(r.ledger_text(), r.rounds_text());
  for (const auto& e : report.errors) MESSAGE(e);
  CHECK(report.ok());
  CHECK(report.indices == 120);
  CHECK(report.committed == 60);
  CHECK(report.partial == 10);
  CHECK(report.returned == 10);
  CHECK(report.leased == 40);
  CHECK(report.epochs == 3);
  CHECK(report.in_flight == 0);
}

TEST_CASE("an empty run passes") {
  run r;
  CHECK(verify(r.ledger_text(), r.rounds_text()).ok());
}

TEST_CASE("a ledger with any row removed, doubled or swapped fails") {
  const auto r = three_rounds();
  const auto lines = lines_of(r.ledger_text());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    CAPTURE(lines[i]);
    auto removed = lines;
    removed.erase(removed.begin() + static_cast<std::ptrdiff_t>(i));
    CHECK_FALSE(verify(text_of(removed), r.rounds_text()).ok());
    auto doubled = lines;
    doubled.insert(doubled.begin() + static_cast<std::ptrdiff_t>(i), lines[i]);
    CHECK_FALSE(verify(text_of(doubled), r.rounds_text()).ok());
    if (i + 1 < lines.size()) {
      auto swapped = lines;
      std::swap(swapped[i], swapped[i + 1]);
      CHECK_FALSE(verify(text_of(swapped), r.rounds_text()).ok());
    }
  }
}

TEST_CASE("a final row with any field changed fails") {
  const auto r = three_rounds();
  const auto lines = lines_of(r.ledger_text());
  std::size_t tried = 0;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const bool is_final = lines[i].find("committed") != std::string::npos ||
                          lines[i].find("partial") != std::string::npos;
    if (!is_final) continue;
    for (int field = 0; field < 8; ++field) {
      if (field == 2) continue;
      std::vector<std::string> fields;
      std::istringstream in(lines[i]);
      for (std::string f; std::getline(in, f, ',');) fields.push_back(f);
      REQUIRE(fields.size() == 8);
      auto& f = fields[static_cast<std::size_t>(field)];
      f.back() = f.back() == '3' ? '2' : '3';
      std::string joined = fields[0];
      for (std::size_t k = 1; k < 8; ++k) joined += "," + fields[k];
      auto changed = lines;
      changed[i] = joined;
      CAPTURE(lines[i]);
      CAPTURE(joined);
      CHECK_FALSE(verify(text_of(changed), r.rounds_text()).ok());
      ++tried;
    }
  }
  CHECK(tried >= 35);
}

TEST_CASE("a final sample that the ledger calls leased or returned is missed") {
  auto r = three_rounds();
  auto doctor = [&](std::string from, std::string to) {
    auto text = r.ledger_text();
    const auto at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, text.find('\n', at) - at, to);
  };
  CHECK_FALSE(verify(doctor("0,10,committed", "0,10,returned,,,,,"), r.rounds_text()).ok());
  CHECK_FALSE(verify(doctor("0,10,committed", "0,10,leased,,1,,,"), r.rounds_text()).ok());
  // The reverse: a committed row that no round contains.
  CHECK_FALSE(verify(doctor("75,5,leased", "75,5,committed,3,2,0000000000000003"
                                           "0000000000000bb8,4,4"),
                     r.rounds_text())
                  .ok());
}

TEST_CASE("a sample used twice passes only if the ledger reports it") {
  auto r = three_rounds();
  (void)r.ledger.expire(1000s);
  (void)r.ledger.lease(4, 100, 1000s);
  // Peer 1's samples 30 to 34 were leased to peer 4 meanwhile. Both use them.
  r.round(4, {1}, {{{30, 5}}}, {0});
  r.round(5, {4}, {{{30, 5}}}, {0});
  const auto text = r.ledger_text();
  const auto report = verify(text, r.rounds_text());
  for (const auto& e : report.errors) MESSAGE(e);
  CHECK(report.ok());
  CHECK(report.repeated_reported == 10);
  auto lines = lines_of(text);
  std::size_t removed = 0;
  for (auto at = lines.begin(); at != lines.end();)
    if (at->find("repeated,5") != std::string::npos)
      at = lines.erase(at), ++removed;
    else
      ++at;
  CHECK(removed == 1);
  CHECK_FALSE(verify(text_of(lines), r.rounds_text()).ok());
}

TEST_CASE(
    "a commit that was on its way when the run stopped is counted, an older one is an error") {
  auto r = three_rounds();
  r.round(4, {1}, {{{30, 5}}}, {0}, false);
  auto report = verify(r.ledger_text(), r.rounds_text());
  CHECK(report.ok());
  CHECK(report.in_flight == 5);
  r.round(5, {2}, {{{75, 5}}}, {0});
  CHECK_FALSE(verify(r.ledger_text(), r.rounds_text()).ok());
}

TEST_CASE("verification reads any bytes without failing") {
  const auto r = three_rounds();
  auto random = stream(3, "verify_data_test");
  for (int i = 0; i < 300; ++i) {
    auto ledger = r.ledger_text(), rounds = r.rounds_text();
    const auto flips = 1 + random.below(4);
    for (std::uint64_t k = 0; k < flips; ++k) {
      auto& text = random.below(2) == 0 ? ledger : rounds;
      const auto at = random.below(text.size());
      text[at] =
          static_cast<char>(random.below(3) == 0 ? random.below(256) : '0' + random.below(10));
    }
    ledger.resize(ledger.size() - random.below(3) * random.below(50));
    (void)verify(ledger, rounds);
  }
  CHECK_FALSE(verify("", "").ok());
  CHECK_FALSE(verify_data("a directory that does not exist").ok());
}

TEST_CASE(
    "a replica that took over leaves a gap, and indices that no live replica knows are counted") {
  run r;
  (void)r.ledger.lease(1, 10, 0s);
  r.round(1, {1}, {{{0, 10}}}, {0});
  sample_ledger next(100s, 1);
  for (const auto& row : r.ledger.snapshot())
    next.apply({row.first, row.first + row.count, row.state});
  next.take_over(0, 10, true, 0s);
  r.ledger = next;
  (void)r.ledger.lease(1, 5, 0s);
  r.round(2, {1}, {{{index_block_size, 5}}}, {0});
  const auto text = r.ledger_text();
  CHECK(text.find(std::to_string(10) + "," + std::to_string(index_block_size - 10) + ",unissued") !=
        std::string::npos);
  auto report = verify(text, r.rounds_text());
  CHECK(report.errors == std::vector<std::string>{});
  CHECK(report.indices == 15);
  CHECK(report.committed == 15);

  // A gap that ends elsewhere is a lost sample.
  auto torn = text;
  torn.replace(torn.find(std::to_string(index_block_size) + ",5"),
               std::to_string(index_block_size).size() + 2,
               std::to_string(index_block_size + 1) + ",4");
  const auto gap = std::to_string(index_block_size - 10);
  torn.replace(torn.find(gap), gap.size(), std::to_string(index_block_size - 9));
  CHECK_FALSE(verify(torn, r.rounds_text()).ok());

  // A round of a primary that is gone is an error, unless the ledger reports its indices as
  // doubtful.
  r.round(3, {2}, {{{10, 7}}}, {0}, false);
  CHECK_FALSE(verify(r.ledger_text(), r.rounds_text()).ok());
  r.ledger.diverge_from(0);
  report = verify(r.ledger_text(), r.rounds_text());
  CHECK(report.ok());
  CHECK(report.doubtful_used == 7);
  CHECK(report.doubtful_repeated == 0);

  // Another round used some of them again.
  r.round(4, {3}, {{{12, 2}}}, {0}, false);
  report = verify(r.ledger_text(), r.rounds_text());
  CHECK(report.ok());
  CHECK(report.doubtful_used == 5);
  CHECK(report.doubtful_repeated == 2);
}

TEST_CASE("the gaps of a primary that is gone are no error if they are doubtful") {
  run r;
  (void)r.ledger.lease(1, 10, 0s);
  r.round(1, {1}, {{{0, 10}}}, {0});
  r.ledger.know_index_blocks(2);
  r.ledger.diverge_from(1);
  // The other primary leased them.
  r.round(2, {2}, {{{index_block_size + 20, 5}}}, {0});
  auto report = verify(r.ledger_text(), r.rounds_text());
  CHECK(report.errors == std::vector<std::string>{});
  CHECK(report.committed == 15);
  // Without the doubtful report, the first 20 indices are missing.
  auto text = lines_of(r.ledger_text());
  std::erase_if(text,
                [](const std::string& line) { return line.find("doubtful") != std::string::npos; });
  report = verify(text_of(text), r.rounds_text());
  REQUIRE(report.errors.size() == 1);
  CHECK(report.errors[0] == "ledger.csv:3: does not end where an index block begins");
}
