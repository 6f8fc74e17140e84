// A question of `shoal new`: it stands with its default, and a wrong answer repeats it with a
// reason.
#pragma once

#include "kernels/base/result.hpp"

#include <istream>
#include <ostream>
#include <string>
#include <string_view>

namespace shoal::scenarios {

/// Sets `value` from an answer that `parse` accepts. An empty line keeps `value`, whose text is
/// `initially`. Errors: the input ends.
template <class T, class Parse>
result<void> ask_one(std::string_view question, std::string_view initially, T& value, Parse parse,
                     std::istream& in, std::ostream& out) {
  for (std::string answer;;) {
    out << question << " [" << initially << "]: " << std::flush;
    if (!std::getline(in, answer)) return failure{"the answers ended; nothing was written"};
    if (answer.ends_with('\r')) answer.pop_back();
    if (answer.empty()) return {};
    auto parsed = parse(answer);
    if (parsed) {
      value = *parsed;
      return {};
    }
    out << "  " << parsed.error() << "\n";
  }
}

} // namespace shoal::scenarios
