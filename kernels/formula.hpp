// Arithmetic formulas as text. One text is computed with, shown, and given to programs in other
// languages (the page).
//   formula: terms joined by + and -, factors by * and /, from the left; numbers (4, 0.5), names,
//            parentheses, and functions
//   if(c, x, y)  x where c > 0, else y
//   max(x, ...)  the largest
//   ceil(x)      rounded up
#pragma once

#include "kernels/base/result.hpp"

#include <map>
#include <string>
#include <string_view>

namespace shoal::kernels {

using formula_values = std::map<std::string, double, std::less<>>;

/// Errors: a text that is no formula, a name without a value, a function with too few or too many
/// arguments. The message says where.
result<double> evaluate(std::string_view formula, const formula_values& values);

} // namespace shoal::kernels
