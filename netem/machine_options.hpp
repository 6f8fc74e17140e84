// The options of a computer and its access line, for fabric::add_machine().
#pragma once

#include "kernels/base/units.hpp"
#include "netem/ids.hpp"
#include "netem/nat_class.hpp"
#include "netem/path_quality.hpp"
#include "netem/tcp.hpp"

#include <optional>
#include <string>

namespace shoal::netem {

struct machine_options {
  std::string name{};
  region_index region = 0;
  data_rate up{}, down{};
  /// The rate at which the computer serializes, encrypts and copies bulk, sent and received
  /// together. 0: this takes no time.
  data_rate serialize{};
  /// The queues in front of the two lines; by default those of the fabric's options.
  std::optional<link_queue> up_queue{}, down_queue{};
  path_quality line{}; ///< the line's delay, jitter and so on, added to those between the regions
  site_index site = no_site; ///< the machine is behind this site's shared links
  /// If both ends have coordinates, their distance is the delay between the regions.
  std::optional<coordinates> at{};
  nat_class nat = nat_class::open;
};

} // namespace shoal::netem
