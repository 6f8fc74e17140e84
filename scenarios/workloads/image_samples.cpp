#include "scenarios/workloads/image_samples.hpp"

#include "kernels/base/rng.hpp"
#include "scenarios/workloads/idx_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>

namespace shoal::scenarios {

result<image_samples> read_image_samples(const std::string& image_file,
                                         const std::string& label_file,
                                         const expected_images& expected) {
  const auto images = read_idx(image_file), labels = read_idx(label_file);
  if (!images) return failure{images.error()};
  if (!labels) return failure{labels.error()};
  const auto count = images->dimensions.front(), size = images->values.size() / count;
  if (size != expected.size)
    return failure{fmt::format("{}: has images of {} bytes, and {}.size is {}", image_file, size,
                               expected.section, expected.size)};
  if (labels->values.size() != count)
    return failure{fmt::format("{}: has {} labels, and {} has {} images", label_file,
                               labels->values.size(), image_file, count)};
  if (count < 10)
    return failure{fmt::format("{}: has {} images: 10 are needed", image_file, count)};
  for (const auto label : labels->values)
    if (label >= expected.classes)
      return failure{fmt::format("{}: has a label {}, and {}.classes is {}", label_file, label,
                                 expected.section, expected.classes)};
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  auto random = stream(0, "digits.order");
  random.shuffle(std::span(order));
  image_samples out{size + 1, count - count / 10, {}};
  out.all.reserve(count * out.bytes);
  for (const auto i : order) {
    const auto* first = images->values.data() + i * size;
    std::transform(first, first + size, std::back_inserter(out.all),
                   [](unsigned char x) { return std::byte{x}; });
    out.all.push_back(std::byte{labels->values[i]});
  }
  return out;
}

} // namespace shoal::scenarios
