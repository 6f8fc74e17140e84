// The check of `data.files` for the workloads that learn from texts.
#pragma once

#include "scenarios/schema/checking.hpp"
#include "scenarios/schema/scenario.hpp"

namespace shoal::scenarios {

/// Reports files that are missing or cannot be read. `model`: a noun with its article, for the
/// message about a scenario without files.
void check_texts(const scenario& what, const char* model, checking& report);

} // namespace shoal::scenarios
