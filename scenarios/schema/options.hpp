// Type-erased options of a registered workload, training method, role or program. The schema does
// not know the struct of such options. An options_box holds the struct by value and shows its
// described fields to any visitor of describe.hpp: the reader, the printer and the reference page.
//
// option_visitor lists the field types that a box can show. A box shows an enum as a `word`, and a
// nested struct with describe() as another box.
#pragma once

#include "kernels/base/check.hpp"
#include "kernels/base/units.hpp"
#include "kernels/mixing.hpp"
#include "scenarios/schema/rule.hpp"

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

namespace shoal::scenarios {

/// A type-erased enumerator: one of several words.
struct word {
  std::vector<const char*> names;
  std::size_t chosen = 0;
  const char* text() const { return names[chosen]; }
  bool operator==(const word& other) const noexcept { return chosen == other.chosen; }
};

class options_box;
class options_list;

/// Visits the fields of an options_box, with one call for each field.
class option_visitor {
public:
  virtual ~option_visitor() = default;

  /// describe() calls this for each field. `T` is a type of the list below, an enum with
  /// names_of(), or a struct with describe().
  template <class T>
  void field(const char* key, T& value, const char* meaning, const rule& r = {});

protected:
  virtual void visit(const char* key, bool& value, const char* meaning, const rule& r) = 0;
  virtual void visit(const char* key, std::uint64_t& value, const char* meaning, const rule& r) = 0;
  virtual void visit(const char* key, double& value, const char* meaning, const rule& r) = 0;
  virtual void visit(const char* key, duration& value, const char* meaning, const rule& r) = 0;
  virtual void visit(const char* key, data_rate& value, const char* meaning, const rule& r) = 0;
  virtual void visit(const char* key, data_size& value, const char* meaning, const rule& r) = 0;
  virtual void visit(const char* key, kernels::grid& value, const char* meaning, const rule& r) = 0;
  virtual void visit(const char* key, std::string& value, const char* meaning, const rule& r) = 0;
  virtual void visit(const char* key, std::vector<std::string>& value, const char* meaning,
                     const rule& r) = 0;
  virtual void visit(const char* key, std::vector<double>& value, const char* meaning,
                     const rule& r) = 0;
  virtual void visit(const char* key, std::optional<double>& value, const char* meaning,
                     const rule& r) = 0;
  virtual void visit(const char* key, word& value, const char* meaning, const rule& r) = 0;
  virtual void visit(const char* key, options_box& value, const char* meaning, const rule& r) = 0;
  virtual void visit(const char* key, options_list& value, const char* meaning, const rule& r) = 0;
};

/// A type-erased struct with describe(), held by value. An empty box has no fields.
class options_box {
public:
  options_box() = default;
  /// Holds `value`. Requires: describe(option_visitor&, T&), a default constructor that gives the
  /// default options, and ==.
  template <class T>
  static options_box of(T value) {
    options_box out;
    out.held_ = std::make_unique<holder<T>>(std::move(value));
    return out;
  }

  options_box(const options_box& other) : held_(other.held_ ? other.held_->copy() : nullptr) {}
  options_box(options_box&&) noexcept = default;
  options_box& operator=(options_box other) noexcept {
    held_ = std::move(other.held_);
    return *this;
  }

  /// Requires: the box holds a T.
  template <class T>
  const T& as() const {
    const auto* found = dynamic_cast<const held_value<T>*>(held_.get());
    SHOAL_CHECK(found != nullptr, "options are of the type that their kind registered");
    return found->value;
  }
  template <class T>
  T& as() {
    return const_cast<T&>(std::as_const(*this).as<T>());
  }
  template <class T>
  bool holds() const {
    return dynamic_cast<const held_value<T>*>(held_.get()) != nullptr;
  }

  /// Returns a box of the same type with default values.
  options_box fresh() const {
    options_box out;
    if (held_) out.held_ = held_->fresh();
    return out;
  }
  void describe_to(option_visitor& v) {
    if (held_) held_->describe_to(v);
  }
  bool operator==(const options_box& other) const {
    return held_ && other.held_ ? held_->equals(*other.held_) : held_ == other.held_;
  }

private:
  struct base {
    virtual ~base() = default;
    virtual std::unique_ptr<base> copy() const = 0;
    virtual std::unique_ptr<base> fresh() const = 0;
    virtual void describe_to(option_visitor& v) = 0;
    virtual bool equals(const base& other) const = 0;
  };
  /// Sources that read a T need no describe() of it: compilers may instantiate all members of a
  /// class that they cast to.
  template <class T>
  struct held_value : base {
    explicit held_value(T v) : value(std::move(v)) {}
    T value;
  };
  template <class T>
  struct holder final : held_value<T> {
    using held_value<T>::held_value;
    std::unique_ptr<base> copy() const override { return std::make_unique<holder>(this->value); }
    std::unique_ptr<base> fresh() const override { return std::make_unique<holder>(T{}); }
    void describe_to(option_visitor& v) override { describe(v, this->value); }
    bool equals(const base& other) const override {
      const auto* same = dynamic_cast<const holder*>(&other);
      return same != nullptr && same->value == this->value;
    }
  };
  std::unique_ptr<base> held_;
};

/// A list of structs of one type. Each item is an options_box.
class options_list {
public:
  using value_type = options_box;
  /// `fresh` is the value of a new item.
  explicit options_list(options_box fresh) : fresh_(std::move(fresh)) {}

  const options_box& fresh() const noexcept { return fresh_; }
  void emplace_back() { items_.push_back(fresh_); }
  void push_back(options_box item) { items_.push_back(std::move(item)); }
  options_box& back() { return items_.back(); }
  void clear() { items_.clear(); }
  bool empty() const noexcept { return items_.empty(); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  bool operator==(const options_list&) const = default;

private:
  options_box fresh_;
  std::vector<options_box> items_;
};

/// A struct with describe(). A box shows a list of such structs item by item.
template <class T>
concept has_options = requires(option_visitor& v, T& value) {
  describe(v, value);
};
template <class T>
constexpr bool is_list_of_options = false;
template <class T>
constexpr bool is_list_of_options<std::vector<T>> = has_options<T>;

template <class T>
void option_visitor::field(const char* key, T& value, const char* meaning, const rule& r) {
  if constexpr (std::is_enum_v<T>) {
    const auto names = names_of(T{});
    word as_word;
    for (const auto& [candidate, name] : names) {
      if (candidate == value) as_word.chosen = as_word.names.size();
      as_word.names.push_back(name);
    }
    visit(key, as_word, meaning, r);
    value = names[as_word.chosen].first;
  } else if constexpr (is_list_of_options<T>) {
    using item = typename T::value_type;
    options_list list{options_box::of(item{})};
    for (const auto& each : value) list.push_back(options_box::of(each));
    visit(key, list, meaning, r);
    value.clear();
    for (const auto& each : list) value.push_back(each.template as<item>());
  } else if constexpr (has_options<T>) {
    auto box = options_box::of(value);
    visit(key, box, meaning, r);
    value = box.template as<T>();
  } else {
    visit(key, value, meaning, r);
  }
}

/// Forwards the fields of a box to `V`, a visitor that is overloaded on field types.
template <class V>
class typed_visitor final : public option_visitor {
public:
  explicit typed_visitor(V& to) : to_(to) {}

private:
  void visit(const char* k, bool& x, const char* m, const rule& r) override {
    to_.field(k, x, m, r);
  }
  void visit(const char* k, std::uint64_t& x, const char* m, const rule& r) override {
    to_.field(k, x, m, r);
  }
  void visit(const char* k, double& x, const char* m, const rule& r) override {
    to_.field(k, x, m, r);
  }
  void visit(const char* k, duration& x, const char* m, const rule& r) override {
    to_.field(k, x, m, r);
  }
  void visit(const char* k, data_rate& x, const char* m, const rule& r) override {
    to_.field(k, x, m, r);
  }
  void visit(const char* k, data_size& x, const char* m, const rule& r) override {
    to_.field(k, x, m, r);
  }
  void visit(const char* k, kernels::grid& x, const char* m, const rule& r) override {
    to_.field(k, x, m, r);
  }
  void visit(const char* k, std::string& x, const char* m, const rule& r) override {
    to_.field(k, x, m, r);
  }
  void visit(const char* k, std::vector<std::string>& x, const char* m, const rule& r) override {
    to_.field(k, x, m, r);
  }
  void visit(const char* k, std::vector<double>& x, const char* m, const rule& r) override {
    to_.field(k, x, m, r);
  }
  void visit(const char* k, std::optional<double>& x, const char* m, const rule& r) override {
    to_.field(k, x, m, r);
  }
  void visit(const char* k, word& x, const char* m, const rule& r) override {
    to_.field(k, x, m, r);
  }
  void visit(const char* k, options_box& x, const char* m, const rule& r) override {
    to_.field(k, x, m, r);
  }
  void visit(const char* k, options_list& x, const char* m, const rule& r) override {
    to_.field(k, x, m, r);
  }

  V& to_;
};

template <class V>
requires(!std::derived_from<V, option_visitor>) void describe(V& v, options_box& o) {
  typed_visitor<V> typed(v);
  o.describe_to(typed);
}

/// Returns default options of the same kind as `value`.
template <class S>
S fresh_of(const S&) {
  return S{};
}
inline options_box fresh_of(const options_box& value) {
  return value.fresh();
}

} // namespace shoal::scenarios
