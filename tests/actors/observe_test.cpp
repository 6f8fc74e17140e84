#include "actors/observe.hpp"
#include "actors/training/observations.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

using namespace shoal;
using namespace shoal::actors;

namespace {

// Two types that no header of the library declares, with the same members.
struct warmed_up {
  static constexpr std::string_view observed_as = "warmed_up";
  std::uint64_t degrees = 0;
};
struct cooled_down {
  static constexpr std::string_view observed_as = "cooled_down";
  std::uint64_t degrees = 0;
  std::string logged_fields() const { return "\"degrees\":" + std::to_string(degrees); }
};

/// The signature of host::observe().
std::string name_of(const observation& what) {
  return std::string(what.name());
}

} // namespace

TEST_CASE("any struct with a name is an observation") {
  CHECK(name_of(stepped{}) == "stepped");
  CHECK(name_of(misbehaved{7, "why"}) == "misbehaved");
  CHECK(name_of(warmed_up{30}) == "warmed_up");
  static_assert(!observable<int>);
  static_assert(!observable<observation>);
}

TEST_CASE("an observation is found by its own type and by no other") {
  const warmed_up warm{30};
  const observation what = warm;
  REQUIRE(get_if<warmed_up>(&what) == &warm);
  CHECK(get_if<cooled_down>(&what) == nullptr);
  CHECK(get_if<stepped>(&what) == nullptr);
  CHECK(holds_alternative<warmed_up>(what));
  CHECK_FALSE(holds_alternative<cooled_down>(what));
}

TEST_CASE("a kept observation outlives the struct that it was made from") {
  std::optional<kept_observation> kept;
  {
    trained job{3, {{7, 2}}, 1.5};
    kept.emplace(job);
    job.samples.clear();
  }
  const auto* job = get_if<trained>(&*kept);
  REQUIRE(job != nullptr);
  CHECK(job->epoch == 3);
  CHECK(job->samples == std::vector<sample_range>{{7, 2}});
}

TEST_CASE("kept observations of all types share one vector, and copies outlive it") {
  std::vector<kept_observation> all;
  all.emplace_back(misbehaved{7, "a long enough text that it has memory of its own"});
  all.emplace_back(warmed_up{30});
  kept_observation last = all.front();
  last = all.back();
  auto first = all.front();
  all.clear();
  REQUIRE(get_if<misbehaved>(&first) != nullptr);
  CHECK(get_if<misbehaved>(&first)->culprit == 7);
  REQUIRE(get_if<warmed_up>(&last) != nullptr);
  CHECK(get_if<warmed_up>(&last)->degrees == 30);
  // A copy of a copy refers to the same struct.
  const kept_observation again(first);
  CHECK(again.address() == first.address());
}

TEST_CASE(
    "a table calls the handler of the type, and returns an empty result for a type without one") {
  observation_handlers<std::string, int> text;
  text.on<warmed_up>([](const warmed_up& what, int more) {
        return std::to_string(static_cast<int>(what.degrees) + more);
      })
      .on<stepped>([](const stepped& what, int) { return "epoch " + std::to_string(what.epoch); });
  CHECK(text(warmed_up{30}, 5) == "35");
  CHECK(text(stepped{4, {}, {}, {}}, 0) == "epoch 4");
  CHECK(text(cooled_down{30}, 5).empty());
  CHECK(text.knows(warmed_up{}));
  CHECK_FALSE(text.knows(cooled_down{}));
  text.on<warmed_up>([](const warmed_up&, int) { return std::string("replaced"); });
  CHECK(text(warmed_up{30}, 5) == "replaced");
}

TEST_CASE("the handlers of a table may return nothing") {
  std::uint64_t sum = 0;
  observation_handlers<void> count;
  count.on<warmed_up>([&](const warmed_up& what) { sum += what.degrees; });
  count(warmed_up{30});
  count(cooled_down{5});
  CHECK(sum == 30);
}

TEST_CASE("a type with fields for the event log offers them, and the others offer none") {
  CHECK((observation_type_of<warmed_up>.logged_fields == nullptr));
  const cooled_down cold{5};
  REQUIRE((observation_type_of<cooled_down>.logged_fields != nullptr));
  CHECK(observation_type_of<cooled_down>.logged_fields(&cold) == "\"degrees\":5");
}
