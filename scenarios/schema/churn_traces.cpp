#include "scenarios/schema/churn_traces.hpp"

#include "scenarios/schema/check_scenario.hpp"
#include "scenarios/schema/describe.hpp"
#include "scenarios/schema/hosts.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace shoal::scenarios {
namespace {

netem::trace_format format_of(trace_format_choice choice, const std::vector<std::string>& files) {
  if (choice != trace_format_choice::detect) return *netem::trace_format_of(name_of(choice));
  std::error_code failed;
  if (files.empty() || !std::filesystem::is_regular_file(files.front(), failed))
    return netem::trace_format::csv;
  std::ifstream in(files.front(), std::ios::binary);
  std::string beginning(65536, '\0');
  in.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  beginning.resize(static_cast<std::size_t>(in.gcount()));
  return netem::detect_trace_format(beginning);
}

} // namespace

std::vector<std::string> trace_files(const std::string& path) {
  std::error_code failed;
  if (path.find_first_of("*?[") == std::string::npos || std::filesystem::exists(path, failed))
    return {path};
  return files_matching(path);
}

std::vector<trace_use> trace_uses(const scenario& from, const std::string& folder) {
  std::vector<trace_use> out;
  for (const peer_group& group : from.peers) {
    const churn_options& c = group.churn;
    if (c.trace.empty()) continue;
    trace_use use;
    use.files = trace_files(path_from(folder, c.trace));
    use.how.format = format_of(c.format, use.files);
    use.how.unit = c.unit == time_unit::as_format ? "" : name_of(c.unit);
    use.how.seed = from.seed;
    const bool named =
        use.how.format == netem::trace_format::csv || use.how.format == netem::trace_format::peers;
    use.by_name = c.match == trace_match::as_format ? named : c.match == trace_match::name;
    const auto same = std::find_if(out.begin(), out.end(), [&](const trace_use& other) {
      return other.files == use.files && other.how.format == use.how.format &&
             other.how.unit == use.how.unit && other.by_name == use.by_name;
    });
    trace_use& to = same == out.end() ? out.emplace_back(std::move(use)) : *same;
    to.groups.push_back(&group);
  }
  return out;
}

} // namespace shoal::scenarios
