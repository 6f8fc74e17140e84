// The aggregators that work coordinate by coordinate, against plain sorts.
#include "kernels/robust/coordinate_median.hpp"
#include "kernels/robust/trimmed_mean.hpp"
#include "tests/kernels/robust/contributions.hpp"

#include <algorithm>

using namespace shoal;
using namespace shoal::kernels;
using namespace shoal::kernels::testing;

namespace {

std::vector<double> sorted_column(const contributions& given, std::size_t j) {
  std::vector<double> out;
  for (const auto& one : given.values) out.push_back(one[j]);
  std::sort(out.begin(), out.end());
  return out;
}

} // namespace

TEST_CASE("medians and trimmed means are those of sorted columns") {
  rng random = stream(1, "coordinates");
  for (const std::size_t size : {1, 7, 64, 255, 256, 257, 1000})
    for (const std::size_t count : {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 64, 100}) {
      CAPTURE(size);
      CAPTURE(count);
      const auto given = random_contributions(random, count, size, count / 3);
      const auto view = given.view();
      std::vector<double> lower(size), median(size), trimmed(size), expected_lower(size),
          expected_median(size), expected_trimmed(size);
      const auto cut = (count - 1) / 3;
      coordinate_median<double>(view, middle::lower, lower);
      coordinate_median<double>(view, middle::mean, median);
      trimmed_mean<double>(view, cut, trimmed);
      for (std::size_t j = 0; j < size; ++j) {
        const auto column = sorted_column(given, j);
        expected_lower[j] = column[(count - 1) / 2];
        expected_median[j] = (column[(count - 1) / 2] + column[count / 2]) / 2;
        for (std::size_t i = cut; i < count - cut; ++i)
          expected_trimmed[j] += column[i] / static_cast<double>(count - 2 * cut);
      }
      CHECK(lower == expected_lower);
      CHECK(median == expected_median);
      check_near(trimmed, expected_trimmed, 1e-12);
    }
}

TEST_CASE(
    "a median and a trimmed mean hold with a minority at infinity and break with a majority") {
  contributions given;
  for (const float x : {1.0F, 2.0F, 3.0F, 1e30F, 1e30F}) given.add({x});
  std::vector<double> out(1);
  coordinate_median<double>(given.view(), middle::mean, out);
  CHECK(out[0] == 3);
  trimmed_mean<double>(given.view(), 2, out);
  CHECK(out[0] == 3);
  // One faulty value more than is trimmed is in the mean.
  trimmed_mean<double>(given.view(), 1, out);
  CHECK(out[0] > 1e29);
  given.values[2] = {1e30F};
  coordinate_median<double>(given.view(), middle::mean, out);
  CHECK(out[0] > 1e29);
  // A number that leaves nothing over is cut.
  trimmed_mean<double>(given.view(), 9, out);
  CHECK(out[0] > 1e29);
}
