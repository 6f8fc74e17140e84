// Measures the path between two hosts: the round trip, and the throughput in each direction. One
// side answers (line_answerer) and the other side asks (measure_line). Both use the same
// pipes and TLS as a swarm's links, so links get what is measured.
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
  std::string name;      ///< the name of the host that answered; empty without keys
  duration round_trip{}; ///< the shortest of ten
  /// Bits per second from and to this host, once the line was full.
  double up = 0, down = 0;
};

/// Takes about twice `time`, and ten round trips.
/// Errors: no host listens, either side refuses the other, the host does not answer measurements.
result<line_facts> measure_line(const address& to,
                                const std::shared_ptr<const tls_credentials>& credentials,
                                const std::shared_ptr<const admission>& admits, duration time);

/// The rate at which this machine serializes, encrypts and copies, in bits per second, sent and
/// received together. The machine measures the line to itself, whose bytes it handles twice. Takes
/// about `time`. Errors: no port can be opened; those of measure_line.
result<double> measure_copying(const std::shared_ptr<const tls_credentials>& credentials,
                               const std::shared_ptr<const admission>& admits, duration time);

/// Answers admitted hosts, up to `most_at_once` at the same time, until it is destroyed.
class line_answerer {
public:
  static constexpr std::size_t most_at_once = 64;
  /// Errors: as listener::open.
  static result<std::unique_ptr<line_answerer>>
  open(const address& at, std::shared_ptr<const tls_credentials> credentials,
       std::shared_ptr<const admission> admits);
  virtual ~line_answerer() = default;
  virtual address at() const = 0;
};

} // namespace shoal::netem::wire
