#include "kernels/convex_quadratic.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/rng.hpp"

#include <Eigen/Core>

namespace shoal::kernels {

namespace {

constexpr double start_deviation = 3;

template <class T>
Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>> array(std::span<const T> values) {
  return {values.data(), static_cast<Eigen::Index>(values.size())};
}

} // namespace

convex_quadratic::convex_quadratic(std::size_t parameters, double condition, std::uint64_t seed)
    : seed_(seed), eigenvalues_(log_spaced(parameters, condition)), optimum_(parameters) {
  SHOAL_CHECK(parameters >= 1, "there is something to optimize");
  auto random = stream(seed_, "quadratic.optimum");
  random.normals(optimum_);
}

void convex_quadratic::initial(std::span<float> x) const {
  auto random = stream(seed_, "quadratic.start");
  random.for_each_normal(
      x.size(), [&](std::size_t i, double z) { x[i] = static_cast<float>(start_deviation * z); });
}

void convex_quadratic::sample(std::uint64_t index, std::span<float> out) const {
  auto random = stream(seed_, "quadratic.centre", index);
  random.for_each_normal(
      out.size(), [&](std::size_t i, double z) { out[i] = static_cast<float>(optimum_[i] + z); });
}

double convex_quadratic::accumulate(std::span<const float> x, std::span<const float> sample,
                                    std::span<double> gradient_sum) const {
  Eigen::Map<Eigen::ArrayXd> sum(gradient_sum.data(),
                                 static_cast<Eigen::Index>(gradient_sum.size()));
  const Eigen::ArrayXd difference = array(x).cast<double>() - array(sample).cast<double>();
  const auto eigenvalues = array(std::span<const double>(eigenvalues_));
  sum += eigenvalues * difference;
  return 0.5 * (eigenvalues * difference.square()).sum();
}

double convex_quadratic::held_out_loss(std::span<const float> x) const {
  const auto from_optimum = array(x).cast<double>() - array(std::span<const double>(optimum_));
  return 0.5 * (array(std::span<const double>(eigenvalues_)) * from_optimum.square()).sum();
}

} // namespace shoal::kernels
