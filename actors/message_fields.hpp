// Shows the fields of any message to a visitor, which may change them. Attacks and tests use it:
// they change messages without a line for each type.
#pragma once

#include "kernels/base/payload.hpp"

#include <caf/actor.hpp>
#include <caf/message.hpp>
#include <caf/meta/annotation.hpp>
#include <caf/type_erased_tuple.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace shoal::actors {

/// Sees each field of a message, in the order of serialization. Nested structs and lists show their
/// fields one by one.
class field_visitor {
public:
  virtual ~field_visitor() = default;
  /// An integer of `bits` bits. Higher bits of the new value are dropped.
  virtual void number(std::uint64_t& value, unsigned bits) = 0;
  virtual void text(std::string& value) = 0;
  virtual void bytes(payload& value) = 0;
  virtual void address(caf::actor& value) = 0;
};

/// The CAF inspector that calls a field_visitor.
class field_inspector {
public:
  using result_type = void;
  explicit field_inspector(field_visitor& to) : to_(to) {}

  template <class... Ts>
  void operator()(Ts&&... fields) {
    (show(fields), ...);
  }

private:
  template <class T>
  void show(T& x) {
    using type = std::remove_const_t<T>;
    if constexpr (caf::meta::is_annotation<type>::value) {
    } else if constexpr (std::is_same_v<type, bool>) {
      std::uint64_t value = x ? 1 : 0;
      to_.number(value, 1);
      x = value % 2 != 0;
    } else if constexpr (std::is_integral_v<type>) {
      auto value = static_cast<std::uint64_t>(static_cast<std::make_unsigned_t<type>>(x));
      to_.number(value, 8 * sizeof(type));
      x = static_cast<type>(value);
    } else if constexpr (std::is_same_v<type, std::string>) {
      to_.text(x);
    } else if constexpr (std::is_same_v<type, payload>) {
      to_.bytes(x);
    } else if constexpr (std::is_same_v<type, caf::actor>) {
      to_.address(x);
    } else {
      inspect(*this, x);
    }
  }
  template <class T>
  void show(std::vector<T>& all) {
    for (auto& x : all) show(x);
  }

  field_visitor& to_;
};

/// The name of a message's type; empty if it is no message of this program.
std::string_view name_of(const caf::message& content);
/// A copy of the message, after the visitor has seen its fields. Nothing if it is no message of
/// this program.
std::optional<caf::message> with_fields(const caf::message& content, field_visitor& by);

} // namespace shoal::actors
