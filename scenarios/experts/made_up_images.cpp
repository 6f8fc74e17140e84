#include "scenarios/experts/made_up_images.hpp"

#include "kernels/base/rng.hpp"

namespace shoal::scenarios {

made_up_images::made_up_images(std::uint64_t seed, std::size_t size, std::size_t classes)
    : seed_(seed), size_(size), classes_(classes) {
  auto random = stream(seed, "made_up.prototypes");
  for (std::size_t i = 0; i < classes * prototypes_of_class * size; ++i)
    prototypes_.push_back(static_cast<std::byte>(random.below(256)));
}

std::vector<std::byte> made_up_images::samples(std::uint64_t first, std::size_t count) const {
  std::vector<std::byte> out;
  out.reserve(count * (size_ + 1));
  for (std::size_t n = 0; n < count; ++n) {
    auto random = stream(seed_, "made_up.sample", first + n);
    const auto which = random.below(classes_ * prototypes_of_class);
    for (std::size_t i = 0; i < size_; ++i) {
      // Half of the pixels are noise.
      const auto pixel = prototypes_[which * size_ + i];
      out.push_back(random.below(2) == 0 ? pixel : static_cast<std::byte>(random.below(256)));
    }
    out.push_back(static_cast<std::byte>(which % classes_));
  }
  return out;
}

} // namespace shoal::scenarios
