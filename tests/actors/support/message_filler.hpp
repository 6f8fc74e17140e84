// Messages of every type with every kind of content, for tests that send impossible ones.
#pragma once

#include "actors/all_messages.hpp"
#include "kernels/base/payload.hpp"
#include "kernels/base/rng.hpp"

#include <caf/actor.hpp>
#include <caf/meta/annotation.hpp>

#include <cstddef>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace shoal::actors::testing {

using actors::all_messages;

/// Calls f(static_cast<T*>(nullptr)) for the type T of each row.
template <class F, class... Rows>
void for_each_type(message_list<Rows...>, F f) {
  (f(static_cast<typename Rows::type*>(nullptr)), ...);
}

/// Calls f.operator()<Row>() for each row.
template <class F, class... Rows>
void for_each_row(message_list<Rows...>, F f) {
  (f.template operator()<Rows>(), ...);
}

// ---- visiting fields ----------------------------------------------------------------------------

template <class T>
struct is_vector : std::false_type {};
template <class T>
struct is_vector<std::vector<T>> : std::true_type {};

template <class T>
constexpr bool is_leaf = std::is_integral_v<T> || std::is_same_v<T, std::string> ||
                         std::is_same_v<T, payload> || std::is_same_v<T, caf::actor>;

template <class T>
constexpr bool is_meta = std::is_base_of_v<caf::meta::annotation, T>;

// An inspector that calls `f` for each field of a message. `f` may recurse.
template <class F>
struct visitor {
  using result_type = void;
  F& f;
  template <class... Ts>
  void operator()(Ts&&... fields) {
    (visit(fields), ...);
  }
  template <class T>
  void visit(T& field) {
    if constexpr (!is_meta<std::remove_cvref_t<T>>) f(field);
  }
};

template <class T, class F>
void each_field(T& x, F f) {
  visitor<F> v{f};
  inspect(v, x);
}

// ---- filling with values that break naive encodings ---------------------------------------------

struct filler {
  rng& random;
  const caf::actor& someone;
  /// Half of the numbers are small, as counts, indices and epochs are.
  bool plausible = false;

  template <class T>
  void operator()(T& x) {
    if constexpr (std::is_floating_point_v<T>) {
      static_assert(!std::is_floating_point_v<T>, "messages must not hold floats");
    } else if constexpr (std::is_integral_v<T>) {
      const auto how = random.below(plausible ? 8 : 4);
      x = how >= 4   ? static_cast<T>(random.below(40))
          : how == 0 ? std::numeric_limits<T>::max()
          : how == 1 ? std::numeric_limits<T>::min()
                     : static_cast<T>(random.next());
    } else if constexpr (std::is_same_v<T, std::string>) {
      x.clear();
      for (auto n = random.below(9); n > 0; --n) x += static_cast<char>(random.below(256));
    } else if constexpr (std::is_same_v<T, payload>) {
      std::vector<std::byte> bytes(random.below(40));
      for (auto& b : bytes) b = static_cast<std::byte>(random.below(256));
      x = payload{std::move(bytes)};
    } else if constexpr (std::is_same_v<T, caf::actor>) {
      if (random.below(2) == 0)
        x = someone;
      else
        x = caf::actor{};
    } else if constexpr (is_vector<T>::value) {
      x.resize(random.below(4));
      for (auto& element : x) (*this)(element);
    } else {
      each_field(x, *this);
    }
  }
};

} // namespace shoal::actors::testing
