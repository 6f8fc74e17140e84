// '--set a.b=c': changes a value of the document before it is read, so that an override is checked
// exactly like the file. Steps of a path are keys or positions in a list (faults.0.at=3s; the
// position after the last one appends). Metric names in `expect` contain dots:
// expect.loss.final.max=3.
#pragma once

#include "scenarios/schema/document.hpp"

#include <span>
#include <string>

namespace shoal::scenarios {

/// Applies sets[i] in order; problems carry position.set = i. Values of aliases are copied first,
/// so that only the named place changes.
void apply_sets(document& doc, std::span<const std::string> sets);

} // namespace shoal::scenarios
