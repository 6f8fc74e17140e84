// Aggregators for tests. They show that an aggregator needs one file and one registration.
#pragma once

#include "actors/averaging/aggregator.hpp"

namespace shoal::actors::testing {

/// By part: the lower median of each coordinate, without weights. Registered as 'test_median'.
const aggregator_definition& test_median();
/// By part: the contribution whose Euclidean norm is the lower median of all. Registered as
/// 'test_middle_norm'. A stretch of the part would give another contribution.
const aggregator_definition& test_middle_norm();

} // namespace shoal::actors::testing
