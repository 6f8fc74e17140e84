#include "scenarios/page/page_file.hpp"

#include "kernels/base/check.hpp"
#include "scenarios/observe/run_directory.hpp"
#include "scenarios/page/page_text.hpp"

#include <cstdlib>
#include <filesystem>

namespace shoal::scenarios {

namespace {

constexpr std::string_view mark = R"(<script id="shoal-data" type="application/json">)";

/// Escapes '<' for a script element, where '</script' would end the element. JSON has '<' only in
/// strings.
std::string for_script(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json)
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  return out;
}

} // namespace

result<std::string> load_page() {
  namespace fs = std::filesystem;
  std::vector<fs::path> places;
  if (const char* given = std::getenv("SHOAL_PAGE"); given != nullptr && *given != '\0') {
    places.emplace_back(given);
  } else {
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    for (const char* place : {"../web/page.html", "../share/shoal/page.html"})
      places.push_back((program.parent_path() / place).lexically_normal());
  }
  std::error_code error;
  for (const fs::path& place : places)
    if (fs::is_regular_file(place, error)) {
      auto text = read_file(place);
      if (text && text->find(mark) == std::string::npos)
        return failure{fmt::format("'{}' is not the page of shoal", place.string())};
      return text;
    }
  return failure{
      fmt::format("the page was not built ('{}' is not there): that takes Node 18 and npm",
                  places.front().string())};
}

std::string make_report(std::string page, const std::vector<reported_run>& runs) {
  page_text out;
  out.open('{').key("runs").open('[');
  for (const reported_run& run : runs)
    out.raw(fmt::format("{{{},\"sections\":{}}}", place_text(run.place), as_object(run.sections)));
  out.close(']').close('}');
  const std::size_t at = page.find(mark);
  SHOAL_CHECK(at != std::string::npos, "load_page() looks for it");
  const std::size_t begin = at + mark.size(), end = page.find("</script>", begin);
  return page.replace(begin, end - begin, for_script(out.take()));
}

} // namespace shoal::scenarios
