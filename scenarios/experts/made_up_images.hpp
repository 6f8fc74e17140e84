// Images that a run makes up: a prototype of random pixels for each class, and noise. A sample is a
// pure function of its number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shoal::scenarios {

class made_up_images {
public:
  /// Each class has several prototypes, so that no linear classifier knows them all.
  made_up_images(std::uint64_t seed, std::size_t size, std::size_t classes);
  /// The samples [first, first + count): the bytes of an image, then its label.
  std::vector<std::byte> samples(std::uint64_t first, std::size_t count) const;

private:
  static constexpr std::size_t prototypes_of_class = 3;

  std::uint64_t seed_;
  std::size_t size_, classes_;
  std::vector<std::byte> prototypes_; // [classes * prototypes_of_class, size]
};

} // namespace shoal::scenarios
