// log, exp, pow and sines from + - * / alone, so that they give the same bits on every machine. The
// C library's functions differ between versions and pick fused variants by CPU type. All code that
// decides the order or the time of events uses these functions.
//   log(x) = k ln 2 + log(1 + f), with s = f / (2 + f): f - s (f - sum_j 2 s^2j / (2j + 1))
// Error: log, exp, sine and cosine within 2 units in the last place, and within 1e-16 absolute near
// a zero of a sine. pow within 2 + 4 |y log x| units.
// absolute); pow within 2 + 4 |y log x| units.
// Source: the argument reductions of Sun's fdlibm (1993), with plain Taylor coefficients.
#pragma once

namespace shoal::portable {

/// -infinity at 0, NaN below.
double log(double x);
double exp(double x);
/// x to the power y for x >= 0; pow(0, y) is 0 for y > 0, 1 for y = 0, infinity for y < 0.
double pow(double x, double y);
/// cos(2 pi x): turns, not radians, because the reduction is then exact.
double cos_turns(double x);
/// sin(2 pi x).
double sin_turns(double x);

} // namespace shoal::portable
