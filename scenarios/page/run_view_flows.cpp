// The sections of a view that show a moment of the run, as JSON. They are the traffic between
// regions, the samples of each host over time, and the newest arrivals.
#include "scenarios/page/page_text.hpp"
#include "scenarios/page/run_view_state.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace shoal::scenarios {

namespace {

/// Bins that are merged into one, so that a host is 128 numbers.
constexpr std::size_t merged = 4;
constexpr std::size_t most_growing = 200;

} // namespace

std::string run_view::state::flows_text() const {
  if (flows.empty()) return "null";
  const std::size_t known = std::min(facts.regions.size(), most_regions);
  page_text out;
  out.open('{').key("regions").open('[');
  for (std::size_t i = 0; i < known; ++i) out.text(facts.regions[i]);
  out.close(']').key("delays").open('[');
  for (std::size_t i = 0; i < known; ++i) {
    out.open('[');
    for (std::size_t j = 0; j < known; ++j) out.number(to_seconds(facts.delays[i][j]));
    out.close(']');
  }
  out.close(']').key("bin").number(1e-9 * static_cast<double>(axis.width()));
  out.key("until");
  if (const auto until = transfers_until())
    out.seconds(*until);
  else
    out.null();
  // Each bin is a share of the pair's fullest bin.
  out.key("pairs").open('[');
  for (const auto& [pair, bytes] : flows) {
    std::int64_t most = 0, sum = 0;
    for (std::size_t bin = 0; bin < axis.used(); ++bin) {
      most = std::max(most, bytes.get(bin, 0));
      sum += bytes.get(bin, 0);
    }
    if (most == 0) continue;
    std::string line;
    for (std::size_t bin = 0; bin < axis.used(); ++bin)
      line.push_back(
          share_digit(static_cast<double>(bytes.get(bin, 0)) / static_cast<double>(most)));
    line.resize(line.find_last_not_of('0') + 1);
    out.open('{').key("from").whole(pair.first).key("to").whole(pair.second);
    out.key("bytes").whole(sum).key("most").whole(most).key("line").text(line).close('}');
  }
  out.close(']').close('}');
  return out.take();
}

std::string run_view::state::growth_text() const {
  std::vector<std::int64_t> sums(units.size());
  for (std::size_t u = 0; u < units.size(); ++u)
    for (std::size_t bin = 0; bin < axis.used(); ++bin) sums[u] += units[u].loss.get(bin, 2);
  std::vector<std::size_t> order(units.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&sums](std::size_t a, std::size_t b) { return sums[a] > sums[b]; });
  page_text out;
  out.open('{').key("bin").number(1e-9 * static_cast<double>(axis.width()) * merged);
  out.key("rows").open('[');
  for (std::size_t i = 0; i < std::min(order.size(), most_growing); ++i) {
    const std::size_t u = order[i];
    if (sums[u] == 0) break;
    out.open('{').key("name").text(name_of_unit(u)).key("samples").open('[');
    std::int64_t left = sums[u];
    for (std::size_t bin = 0; left > 0 && bin < axis.used(); bin += merged) {
      std::int64_t samples = 0;
      for (std::size_t k = bin; k < std::min(bin + merged, axis.used()); ++k)
        samples += units[u].loss.get(k, 2);
      left -= samples;
      out.whole(samples);
    }
    out.close(']').close('}');
  }
  out.close(']').close('}');
  return out.take();
}

std::string run_view::state::latest_text() const {
  page_text out;
  out.open('[');
  for (const auto& [time, host, reason] : latest)
    out.open('[').seconds(time).text(name_of(host)).text(reason).close(']');
  out.close(']');
  return out.take();
}

} // namespace shoal::scenarios
