// A JSON Schema of scenario files, made from the same describe() functions as the parser. Editors
// complete and check with it.
// Source: JSON Schema, draft 2020-12, json-schema.org. The schema uses only keywords that draft 7
// has too, because editors read that draft best.
#pragma once

#include <string>

namespace shoal::scenarios {

/// The schema as JSON text, in the order of the reference page. A scenario that the reader accepts
/// is valid. The reader refuses more, because a schema cannot say:
///   - the bounds of a quantity with a unit and of a percentage, other than being above zero;
///   - that a key is given twice, and that a whole number has neither a point nor an exponent;
///   - all that depends on several values or on files, which `shoal check` checks.
std::string json_schema();

} // namespace shoal::scenarios
