// The square-cube law of pipelines: computing grows with the square of a layer's width, and
// traffic with the width. A device computes a hop, and then waits for the network:
//   utilization = compute / (compute + transfer + round trip)
//   transfer = bits / rate; bits = 16 * sequence * width, or 8 instead of 16 with 8-bit activations
//   compute = layers * flops / speed; flops = 24 sequence width^2 + 4 sequence^2 width
// The speed of the device follows from a utilization that was measured without latency. It differs
// between widths, because a device uses wide matrices better.
// Source: Ryabinin et al., "SWARM Parallelism", arXiv:2301.11913, section 3.1 and 4.1.
#pragma once

#include <cstdint>

namespace shoal::scenarios {

struct pipeline_layer {
  double width = 0;
  double layers = 1;     ///< the layers of a stage
  double bits = 16;      ///< the size of an activation on the network
  double sequence = 512; ///< the tokens of a micro-batch
  double rate = 500e6;   ///< bit/s
};

/// Seconds of a transfer of the activations of one boundary.
double transfer_seconds(const pipeline_layer& of);
/// Floating-point operations of the forward pass of a stage.
double forward_flops(const pipeline_layer& of);
/// The seconds of computing with which the device is utilized so much without latency. Requires:
/// 0 < utilization < 1.
double calibrated_seconds(const pipeline_layer& of, double utilization);
/// The utilization with a round trip of so many seconds. `compute`: seconds of computing.
double utilization_at(const pipeline_layer& of, double compute, double round_trip);

} // namespace shoal::scenarios
