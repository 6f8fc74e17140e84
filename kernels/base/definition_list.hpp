// A list of definitions that are found by name. The program brings some of them, and a program that
// extends it adds more when it starts. A definition is a struct with a member `name`. It never
// moves, so a pointer names it as well.
// Thread safety: add() only before other threads read.
#pragma once

#include "kernels/base/check.hpp"

#include <deque>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace shoal {

template <class Definition>
class definition_list {
public:
  definition_list(std::initializer_list<Definition> built_in) {
    for (const auto& one : built_in) add(one);
  }
  definition_list(const definition_list&) = delete;
  definition_list& operator=(const definition_list&) = delete;

  /// Requires: a name that no other definition has, without ", ".
  const Definition& add(Definition one) {
    SHOAL_CHECK(!one.name.empty() && one.name.find(", ") == std::string::npos,
                "a definition has a name");
    SHOAL_CHECK(find(one.name) == nullptr, "definitions have different names");
    const auto& added = all_.emplace_back(std::move(one));
    names_.push_back(names_.empty() ? added.name : names_.back() + ", " + added.name);
    return added;
  }

  /// Null if nothing has this name.
  const Definition* find(std::string_view name) const noexcept {
    for (const auto& one : all_)
      if (one.name == name) return &one;
    return nullptr;
  }
  /// In the order of registration.
  const std::deque<Definition>& all() const noexcept { return all_; }
  /// All names, separated by ", ". The text stays at its address when definitions are added.
  const char* names() const noexcept { return names_.empty() ? "" : names_.back().c_str(); }

private:
  std::deque<Definition> all_;
  std::deque<std::string>
      names_; // the lists of all names so far, because rules of options point to them
};

} // namespace shoal
