// What the way between two hosts can do: round trip, and bytes per second each way. One side
// answers (line_answerer), the other asks (measure_line); over the same gRPC and TLS that a swarm's
// links have, so what is measured is what they get.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/base/units.hpp"
#include "netem/wire/address.hpp"
#include "netem/wire/network.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace shoal::netem::wire {

struct line_facts {
  std::string name;        ///< of who answered; empty without keys
  duration round_trip{};   ///< the shortest of ten
  double up = 0, down = 0; ///< bits per second, from here and to here, once the line was full
};

/// Takes about twice `time`, and ten round trips. Errors: nobody is there, it is not admitted or
/// refuses us, it answers nothing of the kind.
result<line_facts> measure_line(const address& to,
                                const std::shared_ptr<grpc::ChannelCredentials>& channel,
                                const std::shared_ptr<const admission>& admits, duration time);

/// Answers whoever is admitted, up to `most_at_once` of them, for as long as it lives.
class line_answerer {
public:
  static constexpr std::size_t most_at_once = 64;
  /// Errors: those of listener::open.
  static result<std::unique_ptr<line_answerer>>
  open(const address& at, std::shared_ptr<grpc::ServerCredentials> credentials,
       std::shared_ptr<const admission> admits);
  virtual ~line_answerer() = default;
  virtual address at() const = 0;
};

} // namespace shoal::netem::wire
