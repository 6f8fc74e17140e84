#include "netem/wire/secret_text.hpp"

#include <openssl/crypto.h>

#include <algorithm>
#include <utility>

namespace shoal::netem::wire {

secret_text::secret_text(std::size_t size) : data_(std::make_unique<char[]>(size)), size_(size) {}

secret_text::secret_text(std::string_view text) : secret_text(text.size()) {
  std::copy(text.begin(), text.end(), data_.get());
}

secret_text::secret_text(secret_text&& other) noexcept
    : data_(std::move(other.data_)), size_(std::exchange(other.size_, 0)) {}

secret_text& secret_text::operator=(secret_text&& other) noexcept {
  if (this != &other) {
    wipe();
    data_ = std::move(other.data_);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

void secret_text::wipe() noexcept {
  // Optimizers remove a plain fill before a free.
  if (data_ != nullptr) OPENSSL_cleanse(data_.get(), size_);
  data_.reset();
  size_ = 0;
}

} // namespace shoal::netem::wire
