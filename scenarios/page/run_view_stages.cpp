// The stages of a pipeline, as JSON.
#include "scenarios/page/page_text.hpp"
#include "scenarios/page/run_view_state.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

namespace shoal::scenarios {

std::string run_view::state::stages_text() const {
  page_text out;
  // The mean number of hosts in each bin, by stage.
  out.open('{').key("bin").number(1e-9 * static_cast<double>(axis.width())).key("hosts").open('[');
  for (const auto& stage : stages.stages()) {
    out.open('[');
    for (std::size_t bin = 0; bin < axis.used(); ++bin) {
      const std::int64_t from = static_cast<std::int64_t>(bin) * axis.width();
      const std::int64_t width =
          std::max<std::int64_t>(1, std::min(axis.width(), axis.end() - from));
      out.number(static_cast<double>(stage.get(bin, stage_columns::held)) /
                 static_cast<double>(width));
    }
    out.close(']');
  }
  // The share of its hosts' time that they computed, by stage; null where no host has told it yet.
  out.close(']').key("loads").open('[');
  for (const auto& stage : stages.stages()) {
    out.open('[');
    for (std::size_t bin = 0; bin < axis.used(); ++bin) {
      const auto known = stage.get(bin, stage_columns::known);
      const auto share = static_cast<double>(stage.get(bin, stage_columns::computed)) /
                         static_cast<double>(std::max<std::int64_t>(1, known));
      out.number(known > 0 ? std::round(1000 * share) / 1000 : std::nan(""));
    }
    out.close(']');
  }
  out.close(']').key("places").open('[');
  // With more hosts, the columns would be as large as all the rest.
  if (single)
    for (const auto& [where, place] : stages.places())
      out.open('[')
          .whole(where.first)
          .text(name_of(where.second))
          .seconds(place.held)
          .flag(place.now)
          .close(']');
  out.close(']').key("moved").whole(static_cast<std::int64_t>(stages.all_moves()));
  out.key("moves").open('[');
  for (const auto& one : stages.moves())
    out.open('[')
        .seconds(one.time)
        .text(name_of(one.host))
        .whole(one.from)
        .whole(one.to)
        .close(']');
  out.close(']').close('}');
  return out.take();
}

} // namespace shoal::scenarios
