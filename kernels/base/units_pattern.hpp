// Regular expressions of the quantities that units.hpp reads, for programs that check a text
// without this library, such as editors.
#pragma once

#include <string>

namespace shoal {

/// Patterns in the dialect of ECMAScript, anchored at both ends. Each one matches the texts with a
/// number and a unit that its parser accepts. A number that is too large or too fine matches, too.
/// '0' without a unit does not match. With `above_zero` the number has a digit other than 0.
std::string duration_pattern(bool above_zero);
std::string rate_pattern(bool above_zero);
std::string size_pattern(bool above_zero);

} // namespace shoal
