#include "scenarios/schema/option_diff.hpp"

#include <doctest/doctest.h>

using namespace shoal::scenarios;

namespace {
std::vector<option_difference> diff(const std::string& a, const std::string& b) {
  return diff_options(parse_document(a), parse_document(b));
}
} // namespace

TEST_CASE("options that differ are named as --set names them") {
  const auto out = diff("seed: 1\naveraging: {group_size: 8, chunk_size: 1KiB}\n",
                        "seed: 1\naveraging: {group_size: 16, chunk_size: 1KiB}\n");
  REQUIRE(out.size() == 1);
  CHECK(out[0] == option_difference{"averaging.group_size", "8", "16"});
}

TEST_CASE("an option that only one side has, and lists of texts, are differences too") {
  const auto out = diff("data: {files: [a, b]}\n", "data: {files: [a]}\ndescription: hello\n");
  REQUIRE(out.size() == 2);
  CHECK(out[0] == option_difference{"data.files", "[a, b]", "[a]"});
  CHECK(out[1] == option_difference{"description", std::nullopt, "hello"});
}

TEST_CASE("a fault more is one difference, wherever it stands in the list") {
  const auto out =
      diff("faults: [{kill: process, select: a, at: 1s}, {kill: machine, select: b, at: 2s}]\n",
           "faults: [{kill: process, select: c, at: 1s}, {kill: process, select: a, at: 1s}, "
           "{kill: machine, select: b, at: 2s}]\n");
  REQUIRE(out.size() == 1);
  CHECK(out[0] == option_difference{"faults", std::nullopt, "{kill: process, select: c, at: 1s}"});
  const auto none = diff("seed: 1\n", "seed: 1\nfaults: [{kill: process, select: a, at: 1s}, "
                                      "{kill: process, select: a, at: 1s}]\n");
  CHECK(none.size() == 2);
}

TEST_CASE("a key that begins with x- is no option") {
  CHECK(diff("seed: 1\nx-run: {shoal: 1}\n", "seed: 1\nx-run: {shoal: 2}\n").empty());
}
