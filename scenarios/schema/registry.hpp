// Registries of the parts of a scenario that vary: workloads, training methods, roles of hosts and
// programs. A definition derives from kind_definition. Its registry lists the built-in definitions
// in one place and accepts more at program start.
#pragma once

#include "scenarios/schema/options.hpp"

#include <algorithm>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::scenarios {

/// A registered kind: its word in scenario files, and its options.
struct kind_definition {
  std::string name;
  std::string meaning;   ///< sentence for the reference page, without full stop
  options_box options{}; ///< options with their default values
};

using kind_list = std::span<const kind_definition* const>;

/// All definitions of one sort, in the order of their registration. The first definition is the
/// default. Thread safety: call add() at program start only; later, any thread may read.
template <class Definition>
class registry {
public:
  registry(std::initializer_list<Definition> built_in) {
    for (const auto& each : built_in) add(each);
  }
  registry(const registry&) = delete;

  /// Requires: no definition has this name yet.
  void add(Definition what) {
    SHOAL_CHECK(find(what.name) == nullptr, "each name is registered once");
    kept_.push_back(std::move(what));
    kinds_.push_back(&kept_.back());
  }
  /// Returns the definition called `name`, or null.
  const Definition* find(std::string_view name) const {
    const auto found = std::find_if(kept_.begin(), kept_.end(),
                                    [&](const Definition& each) { return each.name == name; });
    return found == kept_.end() ? nullptr : &*found;
  }
  const Definition& standard() const { return kept_.front(); }
  kind_list kinds() const { return kinds_; }
  std::vector<std::string> names() const {
    return names_if([](const Definition&) { return true; });
  }
  /// The names of the definitions of which `holds` is true.
  template <class Predicate>
  std::vector<std::string> names_if(Predicate holds) const {
    std::vector<std::string> out;
    for (const auto& each : kept_)
      if (holds(each)) out.push_back(each.name);
    return out;
  }

private:
  std::deque<Definition> kept_; // a deque, because the addresses of definitions must not change
  std::vector<const kind_definition*> kinds_;
};

/// A chosen kind, with its options.
struct choice {
  choice() = default;
  explicit choice(const kind_definition& of) : kind(&of), options(of.options) {}
  /// Requires: `value` is of the type of the kind's options.
  template <class T>
  choice(const kind_definition& of, T value)
      : kind(&of), options(options_box::of(std::move(value))) {}

  const std::string& name() const { return kind->name; }
  template <class T>
  const T& as() const {
    return options.as<T>();
  }
  template <class T>
  T& as() {
    return options.as<T>();
  }
  bool operator==(const choice&) const = default;

  const kind_definition* kind = nullptr;
  options_box options;
};

} // namespace shoal::scenarios
