#include "kernels/base/student_t.hpp"

#include <doctest/doctest.h>

#include <utility>

using namespace shoal;

TEST_CASE("Student's t agrees with the tables, and approaches the normal distribution's") {
  // Abramowitz and Stegun, table 26.10, and its continuation to more digits.
  const std::pair<std::size_t, double> known[] = {
      {1, 12.7062047362}, {2, 4.3026527297},  {3, 3.1824463053},  {4, 2.7764451052},
      {9, 2.2621571628},  {19, 2.0930240544}, {30, 2.0422724563}, {120, 1.9799304051}};
  for (const auto& [degrees, t] : known)
    CHECK(student_t_975(degrees) == doctest::Approx(t).epsilon(1e-9));
  CHECK(student_t_975(200) == doctest::Approx(student_t_975(201)).epsilon(3e-5));
  CHECK(student_t_975(200) > student_t_975(201));
  CHECK(student_t_975(1'000'000'000) == doctest::Approx(1.959963985).epsilon(1e-8));
}
