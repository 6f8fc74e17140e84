// A computer and its access line, as a caller describes them to the fabric.
#pragma once

#include "kernels/base/units.hpp"
#include "netem/ids.hpp"
#include "netem/nat_class.hpp"
#include "netem/path_quality.hpp"

#include <optional>
#include <string>

namespace shoal::netem {

struct machine_options {
  std::string name;
  region_index region = 0;
  data_rate up, down;
  path_quality line{}; ///< delay, jitter and so on of the line, added to those between the regions
  site_index site = no_site; ///< the machine is behind this site's shared links
  std::optional<coordinates>
      at{}; ///< where both ends have some, their distance is the delay between the regions
  nat_class nat = nat_class::open;
};

} // namespace shoal::netem
