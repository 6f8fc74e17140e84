// Text that must not outlive its use, such as a private key. The destructor overwrites the memory.
// The text cannot be copied by accident or formatted.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace shoal::netem::wire {

class secret_text {
public:
  secret_text() = default;
  /// `size` zero bytes, which the caller fills.
  explicit secret_text(std::size_t size);
  /// A copy of `text`. The caller wipes the original.
  explicit secret_text(std::string_view text);
  ~secret_text() { wipe(); }
  secret_text(secret_text&& other) noexcept;
  secret_text& operator=(secret_text&& other) noexcept;
  secret_text(const secret_text&) = delete;
  secret_text& operator=(const secret_text&) = delete;

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  /// Valid as long as this object.
  std::string_view view() const noexcept { return {data_.get(), size_}; }
  std::span<char> bytes() noexcept { return {data_.get(), size_}; }
  /// Overwrites and drops the text.
  void wipe() noexcept;

private:
  std::unique_ptr<char[]> data_;
  std::size_t size_ = 0;
};

} // namespace shoal::netem::wire
