#include "scenarios/compare/history_diff.hpp"
#include "tests/scenarios/compare/helpers.hpp"

#include <fstream>

using namespace shoal;
using namespace shoal::scenarios;
using namespace shoal::scenarios::test;

namespace {

const std::string a0 = "a-0#0/1", a1 = "a-1#0/1";

struct two_logs {
  scratch temp;
  std::filesystem::path a = temp.path / "a", b = temp.path / "b";
  two_logs(const std::vector<std::string>& left, const std::vector<std::string>& right) {
    write_log(a, left);
    write_log(b, right);
  }
  std::optional<divergence> diff(bool coarse = false) const {
    auto out = diff_histories(a, b, coarse);
    REQUIRE(out.ok());
    return *out;
  }
};

} // namespace

TEST_CASE("two equal logs do not diverge, and empty ones neither") {
  CHECK(!two_logs({message(1, a0, a1)}, {message(1, a0, a1)}).diff());
  CHECK(!two_logs({}, {}).diff());
}

TEST_CASE("the first divergence comes with three events before it and three of each side") {
  std::vector<std::string> left, right;
  for (int i = 0; i < 10; ++i) left.push_back(message(i, a0, a1));
  right = left;
  right[6] = killed(6, "a-0#0");
  const auto at = two_logs(left, right).diff();
  REQUIRE(at);
  CHECK(at->common == 6);
  CHECK(at->before == std::vector(left.begin() + 3, left.begin() + 6));
  CHECK(at->a == std::vector(left.begin() + 6, left.begin() + 9));
  CHECK(at->b == std::vector(right.begin() + 6, right.begin() + 9));
}

TEST_CASE("a log that ends early diverges at its end") {
  const auto at = two_logs({message(1, a0, a1)}, {message(1, a0, a1), message(2, a1, a0)}).diff();
  REQUIRE(at);
  CHECK(at->common == 1);
  CHECK(at->a.empty());
  CHECK(at->b == std::vector{message(2, a1, a0)});
  CHECK(first_effect(*at).in_b);
}

TEST_CASE(
    "a log of all events compares with one of rounds when messages and timers are passed over") {
  const two_logs logs({started(0, "a-0#0"), message(1, a0, a1), timer(2, a0), killed(3, "a-0#0")},
                      {started(0, "a-0#0"), killed(3, "a-0#0")});
  CHECK(!logs.diff(true));
  CHECK(logs.diff(false)->common == 1);
}

TEST_CASE("the earlier event is the one that only its side has, and of two at once a host's end") {
  divergence at;
  at.a = {message(9, a0, a1)};
  at.b = {message(5, a0, a1)};
  CHECK(first_effect(at).in_b);
  std::swap(at.a, at.b);
  CHECK(!first_effect(at).in_b);
  at.a = {killed(7, "a-0#0")};
  at.b = {message(7, a0, a1)};
  CHECK(!first_effect(at).in_b);
  std::swap(at.a, at.b);
  CHECK(first_effect(at).in_b);
}

TEST_CASE("events are told in words, with the incarnation only of a host that came back") {
  CHECK(event_words(killed(1, "home-3#0")) == "home-3 was killed");
  CHECK(event_words(started(1, "home-3#2")) == "home-3 (incarnation 2) was started");
  CHECK(event_words(message(1, "home-3#0/2", "home-4#1/0")) ==
        "home-4/0 (incarnation 1) got part_chunk (40 B) from home-3/2, sent at 0.000000001 s");
  CHECK(event_words(timer(1, a0)) == "a-0/1 had a timer, tick");
  CHECK(event_words(R"({"time_ns":4,"what":"down","from":"a-0#0/1","to":"a-1#0/1"})") ==
        "a-1/1 learnt that a-0/1 is gone");
  CHECK(event_words(R"({"time_ns":7,"host":"home-3","what":"stepped","epoch":2})") ==
        "home-3: stepped epoch=2");
  CHECK(event_words("no json") == "no json");
  CHECK(event_time(killed(1'500'000'000, "x#0")) == "1.500000000 s");
  CHECK(event_time("no json").empty());
}

TEST_CASE("a log that is missing, damaged or cut off is an error that names it") {
  two_logs logs({message(1, a0, a1)}, {message(1, a0, a1)});
  std::filesystem::resize_file(logs.b, std::filesystem::file_size(logs.b) - 3);
  auto cut = diff_histories(logs.a, logs.b, false);
  REQUIRE(!cut.ok());
  CHECK(cut.error().find(logs.b.string()) != std::string::npos);
  write(logs.b, "this is no zstd stream");
  CHECK(!diff_histories(logs.a, logs.b, false).ok());
  CHECK(!diff_histories(logs.a, logs.temp.path / "none", false).ok());
}
