// Each file under tests/scenarios/invalid is refused with exactly the text beside it. Lines '#
// --set a.b=c' at its top are overrides.
#include "tests/scenarios/schema/files.hpp"

#include <doctest/doctest.h>

using namespace shoal::scenarios;
using namespace shoal::scenarios::test;

TEST_CASE("every invalid scenario is refused with exactly the diagnostics beside it") {
  const auto files = yaml_files("tests/scenarios/invalid");
  REQUIRE(files.size() >= 30);
  for (const auto& file : files) {
    const std::string text = read_file(file);
    std::vector<std::string> sets;
    const std::string mark = "# --set ";
    for (std::size_t at = 0; text.compare(at, mark.size(), mark) == 0;) {
      const std::size_t end = text.find('\n', at);
      sets.push_back(text.substr(at + mark.size(), end - at - mark.size()));
      at = end + 1;
    }
    const load_result result = load_text(text, file.filename().string(), sets);
    auto beside = file;
    beside.replace_extension(".expected");
    if (updating()) write_file(beside, rendered(result));
    INFO(file);
    CHECK_FALSE(result.value.has_value());
    CHECK_FALSE(result.errors.empty());
    CHECK(rendered(result) == read_file(beside));
  }
}
