// A value and the lock that guards it. Only an `access` object reaches the value, and it holds the
// lock. So the compiler proves that all uses are guarded.
#pragma once

#include <mutex>
#include <utility>

namespace shoal::netem::wire {

template <class T>
class guarded {
public:
  template <class... Arguments>
  explicit guarded(Arguments&&... arguments) : value_(std::forward<Arguments>(arguments)...) {}

  /// Holds the lock until its end of life. An access cannot be copied or moved, so the lock stays
  /// in one scope.
  template <class Value>
  class access {
  public:
    access(std::mutex& mutex, Value& value) : guard_(mutex), value_(value) {}
    access(const access&) = delete;
    Value* operator->() const noexcept { return &value_; }
    Value& operator*() const noexcept { return value_; }

  private:
    std::lock_guard<std::mutex> guard_;
    Value& value_;
  };

  access<T> lock() { return {mutex_, value_}; }
  access<const T> lock() const { return {mutex_, value_}; }

private:
  mutable std::mutex mutex_;
  T value_;
};

} // namespace shoal::netem::wire
