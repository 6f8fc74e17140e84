// Arithmetic that is written as text, so that one text is computed with, shown, and given to
// programs in other languages (the page).
//   formula: terms joined by + and -, factors by * and /, from the left; numbers (4, 0.5), names,
//   parentheses, and functions: if(c, x, y)  x where c > 0, else y        max(x, ...)  the largest
//   ceil(x)  rounded up
#pragma once

#include "kernels/base/result.hpp"

#include <map>
#include <string>
#include <string_view>

namespace shoal::kernels {

using formula_values = std::map<std::string, double, std::less<>>;

/// Errors: what is no formula, a name that has no value, a function with too few or too many
/// arguments; the message says where.
result<double> evaluate(std::string_view formula, const formula_values& values);

} // namespace shoal::kernels
