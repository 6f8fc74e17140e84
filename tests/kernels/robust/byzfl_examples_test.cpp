// The examples that the documentation of ByzFL prints, for the rows (1 2 3), (4 5 6), (7 8 9).
// Source: Gonzalez et al., "ByzFL: Research Framework for Robust Federated Learning",
// arXiv:2505.24802, and the pages of its aggregators and pre-aggregators.
#include "kernels/robust/centered_clip.hpp"
#include "kernels/robust/coordinate_median.hpp"
#include "kernels/robust/geometric_median.hpp"
#include "kernels/robust/krum.hpp"
#include "kernels/robust/pre_aggregation.hpp"
#include "kernels/robust/trimmed_mean.hpp"
#include "tests/kernels/robust/contributions.hpp"

using namespace shoal::kernels;
using namespace shoal::kernels::testing;

namespace {

contributions rows() {
  contributions out;
  out.add({1, 2, 3});
  out.add({4, 5, 6});
  out.add({7, 8, 9});
  return out;
}

using values = std::vector<double>;

std::vector<values> mixed(const contributions& given, const std::vector<mixture>& how) {
  std::vector<values> out;
  for (const auto& one : how) mix<double>(given.view(), one, out.emplace_back(3));
  return out;
}

} // namespace

TEST_CASE("the mean the median and the trimmed mean are those of ByzFL's pages") {
  const auto given = rows();
  const auto view = given.view();
  values out(3);
  std::vector<float> mean(3);
  CHECK(weighted_mean(view, mean) == 3);
  CHECK(mean == std::vector<float>{4, 5, 6});
  coordinate_median<double>(view, middle::mean, out);
  CHECK(out == values{4, 5, 6});
  trimmed_mean<double>(view, 1, out);
  CHECK(out == values{4, 5, 6});
}

TEST_CASE("the geometric median after three iterations from zero is that of ByzFL's page") {
  const auto given = rows();
  values out(3);
  const values zero(3);
  const auto outcome =
      geometric_median<double>(given.view(), zero, {.smoothing = 0.1, .iterations = 3}, out);
  CHECK(outcome.iterations == 3);
  check_near(out, {3.78788764, 4.78788764, 5.78788764}, 0.5e-8);
}

TEST_CASE("Krum and multi-Krum choose as on ByzFL's pages") {
  const auto given = rows();
  const auto view = given.view();
  values out(3);
  multi_krum<double>(view, 1, 1, out);
  CHECK(out == values{1, 2, 3});
  multi_krum<double>(view, 1, 2, out);
  CHECK(out == values{2.5, 3.5, 4.5});
}

TEST_CASE("one step of CenteredClip from zero is that of ByzFL's page") {
  const auto given = rows();
  values out(3);
  const values zero(3), radii(3, 100);
  centered_clip<double>(given.view(), radii, zero, {.iterations = 1}, out);
  check_near(out, {4, 5, 6}, 1e-14);
}

TEST_CASE("buckets and mixtures are those of ByzFL's pages") {
  const auto given = rows();
  const auto view = given.view();
  // The pages show two results of bucketing, for two permutations.
  const std::size_t of_numpy[] = {0, 2, 1}, of_torch[] = {1, 2, 0};
  CHECK(mixed(given, buckets(view, of_numpy, 2)) == std::vector<values>{{4, 5, 6}, {4, 5, 6}});
  CHECK(mixed(given, buckets(view, of_torch, 2)) ==
        std::vector<values>{{5.5, 6.5, 7.5}, {1, 2, 3}});
  CHECK(mixed(given, nearest_mixtures(view, 1)) ==
        std::vector<values>{{2.5, 3.5, 4.5}, {2.5, 3.5, 4.5}, {5.5, 6.5, 7.5}});
}
