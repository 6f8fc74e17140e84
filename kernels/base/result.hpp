// A value or the reason for its absence. Expected failures (a bad file, a full disk) travel as
// result<T>; exceptions of libraries are caught where the library is called.
#pragma once

#include "kernels/base/check.hpp"

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace shoal {

/// The reason of a failure, in one sentence that says where it is and what to do.
struct failure {
  std::string message;
};

template <class T>
class [[nodiscard]] result {
public:
  result(T value) : state_(std::move(value)) {}   // NOLINT: implicit conversions are intended
  result(failure why) : state_(std::move(why)) {} // NOLINT

  bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  /// Requires: ok().
  T& value() & {
    SHOAL_CHECK(ok(), "value() of a failed result");
    return std::get<0>(state_);
  }
  const T& value() const& {
    SHOAL_CHECK(ok(), "value() of a failed result");
    return std::get<0>(state_);
  }
  T&& value() && {
    SHOAL_CHECK(ok(), "value() of a failed result");
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  /// Requires: !ok().
  const std::string& error() const {
    SHOAL_CHECK(!ok(), "error() of a result that holds a value");
    return std::get<1>(state_).message;
  }

private:
  std::variant<T, failure> state_;
};

template <>
class [[nodiscard]] result<void> {
public:
  result() = default;
  result(failure why) : why_(std::move(why)) {} // NOLINT

  bool ok() const noexcept { return !why_.has_value(); }
  explicit operator bool() const noexcept { return ok(); }
  const std::string& error() const {
    SHOAL_CHECK(!ok(), "error() of a result that succeeded");
    return why_->message;
  }

private:
  std::optional<failure> why_;
};

} // namespace shoal
