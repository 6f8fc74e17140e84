// Draws from one stream of a chaos case's seed. A training method draws its options with it, too
// (method_definition::draw).
#pragma once

#include "kernels/base/rng.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace shoal::scenarios {

class dice {
public:
  dice(std::uint64_t seed, std::string_view name) : random_(stream(seed, name)) {}

  bool chance(double probability) { return random_.uniform() < probability; }
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + random_.below(high - low + 1);
  }
  template <class T>
  T one_of(std::initializer_list<T> from) {
    return from.begin()[random_.below(from.size())];
  }
  /// Log-uniform: faults and lines differ by orders of magnitude.
  double spread(double low, double high) { return low * std::pow(high / low, random_.uniform()); }
  std::string seconds(double low, double high) {
    return fmt::format("{}ms", static_cast<std::uint64_t>(spread(low, high) * 1000));
  }

private:
  rng random_;
};

/// The text of fmt::format. Draws among the values happen from left to right, because a list is
/// ordered; a function's arguments are not.
struct text : std::string {
  template <class... Values>
  text(fmt::format_string<Values...> how, Values&&... values)
      : std::string(fmt::format(how, std::forward<Values>(values)...)) {}
};

inline void add_option(std::string& to, const std::string& option) {
  to += (to.empty() ? "" : ", ") + option;
}

/// The training method of a random swarm.
struct drawn_method {
  unsigned peers = 0;
  std::uint64_t micro_batch = 0;
  std::uint64_t batch = 0;         ///< samples of the whole swarm in an epoch; drawn before
  std::string training, averaging; ///< options in YAML's flow style; the method adds its own
  /// A method that may average the optimizer's state: half of its swarms do.
  bool may_average_optimizer = false;
};

} // namespace shoal::scenarios
