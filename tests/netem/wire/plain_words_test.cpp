#include "netem/wire/end_reasons.hpp"
#include "netem/wire/plain_words.hpp"

#include <doctest/doctest.h>

using namespace shoal::netem::wire;

TEST_CASE("the end of a link names the host and tells a goodbye from a loss") {
  CHECK(end_in_words("ada", "10.0.0.7:7000", std::string(has_ended)) ==
        "ada (10.0.0.7:7000) has ended");
  CHECK(end_in_words("ada", "", std::string(closed_by_other)) ==
        "lost ada: it closed the connection");
}
