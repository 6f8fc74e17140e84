#include "kernels/mixing.hpp"

#include "kernels/base/text_fields.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace shoal::kernels {

std::uint64_t grid::cells() const noexcept {
  std::uint64_t out = 1;
  for (std::uint32_t i = 0; i < dimensions; ++i) out *= side;
  return out;
}

result<grid> parse_grid(std::string_view text) {
  grid out{0, 0};
  const std::string whole(text);
  const auto wrong = [&](const std::string& why) {
    return failure{"'" + whole + "' is not a grid: " + why};
  };
  double cells = 1;
  while (true) {
    const auto end = text.find_first_of("xX");
    const auto side = number_of<std::uint32_t>(text.substr(0, end));
    if (!side) return wrong("write sides like 32x32");
    if (*side < 2) return wrong("a side has at least 2 peers");
    if (out.dimensions > 0 && *side != out.side) return wrong("its sides have to be equal");
    out.side = *side;
    ++out.dimensions;
    cells *= *side;
    if (cells > 1.1e12) return wrong("more than 2^40 cells");
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

std::string to_string(const grid& what) {
  std::string out;
  for (std::uint32_t i = 0; i < what.dimensions; ++i)
    out += (i > 0 ? "x" : "") + std::to_string(what.side);
  return out;
}

grid square_grid(std::uint64_t peers) {
  std::uint32_t side = 2;
  while (std::uint64_t{side} * side < peers) ++side;
  return {side, 2};
}

std::uint64_t line_of(const grid& g, std::uint64_t cell, std::uint32_t axis) noexcept {
  std::uint64_t below = 1;
  for (std::uint32_t i = 0; i < axis; ++i) below *= g.side;
  return cell / (below * g.side) * below + cell % below;
}

std::vector<std::uint64_t> place(const grid& g, std::size_t peers, rng& draws) {
  const auto cells = g.cells();
  std::vector<std::uint64_t> all(cells), out;
  std::iota(all.begin(), all.end(), std::uint64_t{0});
  out.reserve(peers);
  while (out.size() < peers) {
    if (peers - out.size() < cells) draws.shuffle(std::span(all));
    out.insert(out.end(), all.begin(),
               all.begin() +
                   static_cast<std::ptrdiff_t>(std::min<std::size_t>(cells, peers - out.size())));
  }
  return out;
}

std::vector<std::uint32_t> random_groups(std::size_t peers, std::size_t size, rng& draws) {
  std::vector<std::uint32_t> order(peers), out(peers);
  std::iota(order.begin(), order.end(), 0u);
  draws.shuffle(std::span(order));
  const auto groups = std::max<std::size_t>(1, peers / size);
  for (std::size_t i = 0; i < peers; ++i)
    out[order[i]] = static_cast<std::uint32_t>(i < groups * size ? i / size : i % groups);
  return out;
}

std::vector<std::uint32_t> exponential_neighbours(std::uint32_t peer, std::uint32_t peers,
                                                  std::uint64_t t) {
  if (peers < 2) return {};
  std::uint64_t hops = 0;
  while ((std::uint64_t{2} << hops) <= peers - 1) ++hops; // floor(log2(N - 1))
  const auto h = hops == 0 ? 0 : t % hops;
  std::vector<std::uint32_t> out;
  for (auto step : {std::uint64_t{1} << h, std::uint64_t{2} << h}) {
    const auto to = static_cast<std::uint32_t>((peer + step) % peers);
    if (to != peer && std::find(out.begin(), out.end(), to) == out.end()) out.push_back(to);
  }
  return out;
}

double random_groups_factor(double peers, double groups) {
  return peers <= 1 ? 0 : (groups - 1) / (peers - 1);
}

double random_groups_factor_as_printed(double peers, double groups) {
  return (groups - 1) / peers + groups / (peers * peers);
}

double full_grid_distortion(const grid& g, std::uint64_t t) {
  if (t >= g.dimensions) return 0;
  const double all = static_cast<double>(g.cells());
  return (std::pow(g.side, -static_cast<double>(t)) - 1 / all) / (1 - 1 / all);
}

double all_reduce_rounds(double peers, double failure, double limit) {
  const double success = std::pow(1 - failure, peers);
  return success > 0 ? (1 - std::pow(1 - success, limit)) / success : limit;
}

double all_reduce_deviation(double peers, double failure, double limit) {
  // E[X^2] = sum over k of (2k - 1) P(X >= k), for X cut at the limit.
  const double miss = 1 - std::pow(1 - failure, peers),
               mean = all_reduce_rounds(peers, failure, limit);
  double square = 0, reached = 1;
  for (double k = 1; k <= limit; ++k, reached *= miss) square += (2 * k - 1) * reached;
  return std::sqrt(std::max(0.0, square - mean * mean));
}

double pair_factor(double peers) {
  return peers <= 1 ? 0 : 1 - 1 / (peers - 1);
}

} // namespace shoal::kernels
