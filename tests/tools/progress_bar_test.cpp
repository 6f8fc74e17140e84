#include "tools/progress_bar.hpp"

#include <doctest/doctest.h>

using namespace shoal::tools;

TEST_CASE("the bar of a sweep says how far it is and how long it will take") {
  CHECK(progress_bar::text({.cells = 40, .finished = 10, .failed = 0, .running = 2, .ran = 10}, 60,
                           79) ==
        "[##########..............................]  10/40 cells  ETA 3m00s  2 running");
  // Cells that were found say nothing of how long the others take.
  CHECK(progress_bar::text({.cells = 40, .finished = 30, .failed = 0, .running = 1, .ran = 5}, 60,
                           60) == "[#################......]  30/40 cells  ETA 2m00s  1 running");
  CHECK(progress_bar::text({.cells = 4, .finished = 0, .failed = 0, .running = 1, .ran = 0}, 5,
                           40) == "[................]  0/4 cells  1 running");
  CHECK(
      progress_bar::text({.cells = 4, .finished = 3, .failed = 1, .running = 0, .ran = 4}, 5, 79) ==
      "[########################################]  4/4 cells  1 failed");
}

TEST_CASE("a narrow terminal loses the bar, then what runs, then the end of the words") {
  const shoal::scenarios::sweep_progress some{
      .cells = 300, .finished = 100, .failed = 3, .running = 2, .ran = 103};
  CHECK(progress_bar::text(some, 103, 45) == "103/300 cells  3 failed  ETA 3m17s  2 running");
  CHECK(progress_bar::text(some, 103, 44) == "103/300 cells  3 failed  ETA 3m17s");
  CHECK(progress_bar::text(some, 103, 20) == "103/300 cells  3 fai");
  for (std::size_t columns = 1; columns < 100; ++columns)
    CHECK(progress_bar::text(some, 103, columns).size() <= columns);
}

TEST_CASE("colours of the bar do not change its text") {
  CHECK(progress_bar::coloured("[##..]  3/4 cells  1 failed") ==
        "[\x1b[32m##\x1b[0m..]  3/4 cells  \x1b[31m1 failed\x1b[0m");
  CHECK(progress_bar::coloured("[....]  0/4 cells") == "[....]  0/4 cells");
}
