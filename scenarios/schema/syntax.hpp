// Says in plain words what is wrong with the form of a YAML text that the parser refuses. The
// parser names a rule of its grammar, and often a line far below the mistake.
#pragma once

#include "scenarios/schema/document.hpp"

#include <optional>
#include <string_view>

namespace shoal::scenarios {

/// The first mistake of indentation, of brackets or of a key, with the line where the block or the
/// bracket began. Empty if the text has none of them. `set` goes into the positions. Requires: the
/// text is UTF-8. Complexity: linear in the text, times the depth of its nesting.
std::optional<problem> syntax_mistake(std::string_view text, int set);

} // namespace shoal::scenarios
