#include "scenarios/page/page_file.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/program_file.hpp"
#include "scenarios/observe/run_directory.hpp"
#include "scenarios/page/page_text.hpp"

#include <cstdlib>
#include <filesystem>

namespace shoal::scenarios {

namespace {

namespace fs = std::filesystem;

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

/// The files that may be the page: the one that `variable` names, else those beside the program.
std::vector<fs::path> places_of(const char* name, const char* variable) {
  if (const char* given = std::getenv(variable); given != nullptr && *given != '\0') return {given};
  const fs::path program = program_file();
  std::vector<fs::path> out;
  for (const char* place : {"../web", "../share/shoal"})
    out.push_back((program.parent_path() / place / name).lexically_normal());
  return out;
}

} // namespace

result<std::string> load_page() {
  const auto places = places_of("page.html", "SHOAL_PAGE");
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

result<std::string> load_chat_page() {
  const auto places = places_of("chat.html", "SHOAL_CHAT_PAGE");
  std::error_code error;
  for (const fs::path& place : places)
    if (fs::is_regular_file(place, error)) return read_file(place);
  return failure{fmt::format("the page is missing: '{}'", places.front().string())};
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
