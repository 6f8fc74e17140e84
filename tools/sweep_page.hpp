// sweep.html: the table of a sweep and small multiples of it, one for each metric, with 95 %
// confidence bands. One file, without scripts.
#pragma once

#include "scenarios/sweep/table.hpp"

#include <string>

namespace shoal::tools {

/// `title`: the scenario's name; `command`: the command that repeats the sweep.
std::string sweep_page(const scenarios::sweep_plan& plan, const scenarios::sweep_table& table,
                       const std::string& title, const std::string& command);

} // namespace shoal::tools
