// A file descriptor that its owner's destructor closes.
#pragma once

#include <unistd.h>

#include <utility>

namespace shoal {

class descriptor {
public:
  explicit descriptor(int value = -1) : value_(value) {}
  ~descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  descriptor(descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  int get() const noexcept { return value_; }
  int release() noexcept { return std::exchange(value_, -1); }

private:
  int value_;
};

} // namespace shoal
