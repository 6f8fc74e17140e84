#include "kernels/base/portable_math.hpp"
#include "kernels/base/rng.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

using namespace shoal;

namespace {

/// |a - b| in units of the last place of b.
double ulps(double a, long double b) {
  const double rounded = static_cast<double>(b);
  const double unit = std::nextafter(std::fabs(rounded), INFINITY) - std::fabs(rounded);
  return static_cast<double>(std::fabs(static_cast<long double>(a) - b)) / unit;
}

} // namespace

TEST_CASE("portable functions stay within their error bounds") {
  rng random = stream(3, "portable math");
  double log_error = 0, exp_error = 0, wave_error = 0, pow_error = 0;
  for (int i = 0; i < 200000; ++i) {
    const double unit = 1 - random.uniform();
    const double any = unit * std::ldexp(1.0, static_cast<int>(random.below(2000)) - 1000);
    const double near_one = 1 + (random.uniform() - 0.5) / 1024;
    for (const double x : {unit, any, near_one})
      log_error =
          std::max(log_error, ulps(portable::log(x), std::log(static_cast<long double>(x))));
    const double power = random.uniform(-700, 700);
    for (const double x : {power, power / 1000, power / 1e9})
      exp_error =
          std::max(exp_error, ulps(portable::exp(x), std::exp(static_cast<long double>(x))));
    const double turn = random.uniform(-2, 2);
    // The argument is reduced exactly first, so that an inexact 2 pi does not affect the reference.
    const long double angle = 2 * std::numbers::pi_v<long double> * (turn - std::round(turn));
    const auto near = [](double value, long double exact) {
      return std::min(ulps(value, exact), std::fabs(static_cast<double>(value - exact)) / 1e-16);
    };
    wave_error = std::max(wave_error, near(portable::cos_turns(turn), std::cos(angle)));
    wave_error = std::max(wave_error, near(portable::sin_turns(turn), std::sin(angle)));
    const double y = random.uniform(-4, 4);
    pow_error =
        std::max(pow_error, ulps(portable::pow(unit, y), std::pow(static_cast<long double>(unit),
                                                                  static_cast<long double>(y))) /
                                (2 + 4 * std::fabs(y * std::log(unit))));
  }
  MESSAGE("worst errors in ulp: log ", log_error, ", exp ", exp_error, ", waves ", wave_error,
          ", pow (of its bound) ", pow_error);
  CHECK(log_error < 2);
  CHECK(exp_error < 2);
  CHECK(wave_error < 2);
  CHECK(pow_error < 1);
}

TEST_CASE("portable functions have the usual values at the ends") {
  const double inf = std::numeric_limits<double>::infinity();
  CHECK(portable::log(1) == 0);
  CHECK(portable::log(0) == -inf);
  CHECK(portable::log(inf) == inf);
  CHECK(std::isnan(portable::log(-1)));
  CHECK(portable::exp(0) == 1);
  CHECK(portable::exp(-inf) == 0);
  CHECK(portable::exp(inf) == inf);
  CHECK(portable::exp(-745) > 0);
  CHECK(portable::exp(709.7) < inf);
  CHECK(portable::exp(710) == inf);
  CHECK(std::isnan(portable::exp(std::nan(""))));
  CHECK(portable::pow(0, 2) == 0);
  CHECK(portable::pow(0, 0) == 1);
  CHECK(portable::pow(0, -1) == inf);
  CHECK(portable::cos_turns(0) == 1);
  CHECK(portable::cos_turns(0.25) == 0);
  CHECK(portable::cos_turns(0.5) == -1);
  CHECK(portable::sin_turns(0.25) == 1);
  CHECK(portable::sin_turns(-0.25) == -1);
  CHECK(portable::sin_turns(3) == 0);
}
