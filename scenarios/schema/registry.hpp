// What varies is registered: a workload, a training method, a role of a host, a program. A
// definition derives kind_definition; its registry lists the built-in ones in one place, and takes
// further ones at program start.
#pragma once

#include "scenarios/schema/options.hpp"

#include <algorithm>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::scenarios {

/// One kind of something: its word in scenario files, and its options there.
struct kind_definition {
  std::string name;
  std::string meaning;   ///< for the reference page, one sentence without its full stop
  options_box options{}; ///< with their default values
};

using kind_list = std::span<const kind_definition* const>;

/// All definitions of one sort, in the order in which they were added. The first one is the
/// default. Thread safety: add() before anything else runs; then any thread may read.
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
  /// Null if there is none.
  const Definition* find(std::string_view name) const {
    const auto found = std::find_if(kept_.begin(), kept_.end(),
                                    [&](const Definition& each) { return each.name == name; });
    return found == kept_.end() ? nullptr : &*found;
  }
  const Definition& standard() const { return kept_.front(); }
  kind_list kinds() const { return kinds_; }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& each : kept_) out.push_back(each.name);
    return out;
  }

private:
  std::deque<Definition> kept_; // addresses stay
  std::vector<const kind_definition*> kinds_;
};

/// One of the kinds, with its options.
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
