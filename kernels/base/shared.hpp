// A value that is made once and held by many. A copy is a pointer, and no holder can change the
// value of the others. A message contains the value itself.
// Thread safety: immutable after construction, may be shared between threads.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace shoal {

template <class T>
class shared {
public:
  shared() : value_(nothing()) {}
  shared(T value)
      : value_(std::make_shared<const T>(std::move(value))) {
  } // NOLINT(google-explicit-constructor): the conversion is intended
  /// Shows `part`, which is inside the value of `whole`. The whole value lives as long as this
  /// does.
  template <class U>
  shared(const shared<U>& whole, const T& part) : value_(whole.value_, &part) {}

  const T& operator*() const noexcept { return *value_; }
  const T* operator->() const noexcept { return value_.get(); }

private:
  template <class U>
  friend class shared;
  static const std::shared_ptr<const T>& nothing() {
    static const auto out = std::make_shared<const T>();
    return out;
  }

  std::shared_ptr<const T> value_; // null only when moved from
};

/// An inspector sees the value. An inspector that may change it (every inspector that is not
/// declared as reading) gets a copy, which then replaces the value.
template <class Inspector, class T>
typename Inspector::result_type inspect(Inspector& f, shared<T>& x) {
  constexpr bool only_reads = [] {
    if constexpr (requires { Inspector::reads_state; })
      return Inspector::reads_state;
    else
      return false;
  }();
  if constexpr (only_reads) {
    return inspect(f, const_cast<T&>(*x));
  } else {
    T value = *x;
    if constexpr (std::is_void_v<typename Inspector::result_type>) {
      inspect(f, value);
      x = std::move(value);
    } else {
      auto out = inspect(f, value);
      x = std::move(value);
      return out;
    }
  }
}

} // namespace shoal
