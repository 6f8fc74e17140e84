// The experts of a mixture, as JSON.
#include "scenarios/page/page_text.hpp"
#include "scenarios/page/run_view_state.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace shoal::scenarios {

namespace {

/// Bins of the axis that are one bin of the page, so that the lines of many experts stay short.
std::size_t bins_of_one(std::size_t experts) {
  return experts <= 1024 ? 4 : 16;
}

struct lines {
  std::vector<std::int64_t> rows, steps, unsaved;
};

lines lines_of(const expert_grid::one& of, std::size_t used, std::size_t width) {
  lines out;
  std::int64_t steps = 0, copied = 0;
  for (std::size_t from = 0; from < used; from += width) {
    std::int64_t rows = 0;
    for (std::size_t bin = from; bin < std::min(from + width, used); ++bin) {
      rows += of.bins.get(bin, expert_grid::rows);
      steps += of.bins.get(bin, expert_grid::steps);
      copied += of.bins.get(bin, expert_grid::copied);
    }
    out.rows.push_back(rows);
    out.steps.push_back(steps);
    out.unsaved.push_back(std::max<std::int64_t>(0, steps - copied));
  }
  return out;
}

/// A digit for the square root of each share of `most`, so that small values differ, too.
std::string digits(const std::vector<std::int64_t>& line, std::int64_t most) {
  std::string out;
  for (const auto value : line)
    out += share_digit(std::sqrt(static_cast<double>(std::max<std::int64_t>(0, value)) /
                                 static_cast<double>(std::max<std::int64_t>(1, most))));
  return out;
}

} // namespace

std::string run_view::state::experts_text() const {
  const auto width = bins_of_one(experts.all().size());
  std::vector<lines> all;
  std::int64_t rows = 0, steps = 0, unsaved = 0;
  const auto most = [](std::int64_t& of, const std::vector<std::int64_t>& line) {
    for (const auto value : line) of = std::max(of, value);
  };
  std::map<std::uint32_t, std::int64_t> hosts;
  for (const auto& [where, one] : experts.all()) {
    all.push_back(lines_of(one, axis.used(), width));
    most(rows, all.back().rows);
    most(steps, all.back().steps);
    most(unsaved, all.back().unsaved);
    for (const auto& each : one.holds)
      hosts.try_emplace(each.host, static_cast<std::int64_t>(hosts.size()));
  }
  page_text out;
  out.open('{').key("bin").number(1e-9 * static_cast<double>(axis.width()) *
                                  static_cast<double>(width));
  out.key("most").open('[').whole(rows).whole(steps).whole(unsaved).close(']');
  std::vector<std::string> names(hosts.size());
  for (const auto& [host, number] : hosts) names[static_cast<std::size_t>(number)] = name_of(host);
  out.key("hosts").open('[');
  for (const auto& each : names) out.text(each);
  out.close(']').key("experts").open('[');
  auto line = all.begin();
  for (const auto& [where, one] : experts.all()) {
    out.open('{').key("place").open('[');
    for (const auto each : where) out.whole(each);
    out.close(']');
    for (const auto& [name, value] :
         {std::pair{"rows", one.rows}, std::pair{"requests", one.requests},
          std::pair{"steps", one.steps}, std::pair{"copied", one.copied},
          std::pair{"deaths", one.deaths}, std::pair{"revivals", one.revivals}})
      out.key(name).whole(static_cast<std::int64_t>(value));
    out.key("lines").open('[').text(digits(line->rows, rows)).text(digits(line->steps, steps));
    out.text(digits(line->unsaved, unsaved)).close(']').key("holds").open('[');
    for (const auto& each : one.holds) {
      out.open('[').seconds(each.from);
      if (each.to)
        out.seconds(*each.to);
      else
        out.null();
      out.whole(hosts.at(each.host)).flag(each.revived).flag(each.died);
      out.whole(static_cast<std::int64_t>(each.steps)).close(']');
    }
    out.close(']').close('}');
    ++line;
  }
  out.close(']').close('}');
  return out.take();
}

} // namespace shoal::scenarios
