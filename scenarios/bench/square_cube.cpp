#include "scenarios/bench/square_cube.hpp"

#include "kernels/base/check.hpp"
#include "kernels/transformer_flops.hpp"

namespace shoal::scenarios {

double transfer_seconds(const pipeline_layer& of) {
  return of.bits * of.sequence * of.width / of.rate;
}

double forward_flops(const pipeline_layer& of) {
  return of.layers * kernels::layer_forward_flops(of.sequence, of.width, 4 * of.width);
}

double calibrated_seconds(const pipeline_layer& of, double utilization) {
  SHOAL_CHECK(utilization > 0 && utilization < 1, "a utilization is a fraction");
  return transfer_seconds(of) * utilization / (1 - utilization);
}

double utilization_at(const pipeline_layer& of, double compute, double round_trip) {
  return compute / (compute + transfer_seconds(of) + round_trip);
}

} // namespace shoal::scenarios
