#include "scenarios/page/page_file.hpp"

#include <doctest/doctest.h>

using namespace shoal::scenarios;

TEST_CASE("nothing in the data of a report ends its script") {
  const std::string page =
      R"(<body><script id="shoal-data" type="application/json">null</script><script>x</script></body>)";
  const std::string report =
      make_report(page, {{{"a </script><b>"}, {{"scenario", R"("<!-- </script> -->")"}}}});
  CHECK(report.starts_with(
      R"(<body><script id="shoal-data" type="application/json">{"runs":[{"title":"a \u003c/script>)"));
  CHECK(report.ends_with("]}</script><script>x</script></body>"));
  const std::string data = report.substr(0, report.find("</script><script>x"));
  CHECK(data.rfind('<') == data.find("<script")); // no other one
}
