#include "kernels/learn/pictures/codebook.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/learn/pictures/nearest_entry.hpp"
#include "kernels/learn/pictures/picture_coder.hpp"

#include <algorithm>
#include <map>
#include <string>

namespace shoal::learn {

namespace {

/// The patch in row `r` and column `c` of patches.
void copy_patch(const picture& from, std::size_t patch, std::size_t r, std::size_t c, float* out) {
  for (std::size_t y = 0; y < patch; ++y)
    out = std::copy_n(from.rgb.begin() + static_cast<std::ptrdiff_t>(
                                             3 * ((r * patch + y) * from.width + c * patch)),
                      3 * patch, out);
}

/// Different patches and how often each occurs.
struct patch_counts {
  std::size_t width = 0;
  std::vector<float> values;
  std::vector<double> counts;
  std::size_t size() const { return counts.size(); }
  const float* operator[](std::size_t i) const { return values.data() + i * width; }
};

patch_counts count_patches(std::span<const picture> pictures, std::size_t patch) {
  patch_counts out{3 * patch * patch, {}, {}};
  std::map<std::vector<float>, std::size_t> places;
  std::vector<float> one(out.width);
  for (const auto& from : pictures)
    for (std::size_t r = 0; r < from.height / patch; ++r)
      for (std::size_t c = 0; c < from.width / patch; ++c) {
        copy_patch(from, patch, r, c, one.data());
        const auto [place, added] = places.try_emplace(one, out.size());
        if (added) {
          out.values.insert(out.values.end(), one.begin(), one.end());
          out.counts.push_back(0);
        }
        out.counts[place->second] += 1;
      }
  return out;
}

} // namespace

std::vector<token_id> codebook::encode(const picture& from) const {
  SHOAL_CHECK(from.width == pixels() && from.height == pixels(), "a picture has the book's size");
  nearest_entry nearest(entries, width());
  std::vector<float> one(width());
  std::vector<token_id> out;
  for (std::size_t r = 0; r < side; ++r)
    for (std::size_t c = 0; c < side; ++c) {
      copy_patch(from, patch, r, c, one.data());
      out.push_back(static_cast<token_id>(nearest.find(one.data())));
    }
  return out;
}

picture codebook::decode(std::span<const token_id> codes) const {
  SHOAL_CHECK(codes.size() == side * side, "a picture has a code for each patch");
  auto out = white_picture(pixels(), pixels());
  for (std::size_t i = 0; i < codes.size(); ++i) {
    SHOAL_CHECK(codes[i] >= 0 && static_cast<std::size_t>(codes[i]) < this->codes(),
                "codes are in the book");
    const float* entry = entries.data() + static_cast<std::size_t>(codes[i]) * width();
    for (std::size_t y = 0; y < patch; ++y)
      std::copy_n(entry + 3 * patch * y, 3 * patch,
                  out.rgb.begin() +
                      static_cast<std::ptrdiff_t>(
                          3 * ((i / side * patch + y) * pixels() + i % side * patch)));
  }
  return out;
}

result<codebook> train_codebook(std::span<const picture> pictures, const codebook_training& options,
                                const std::function<void(std::size_t, double)>& progress) {
  const auto side = patches_on_a_side(pictures, options.patch);
  if (!side) return failure{side.error()};
  const auto patches = count_patches(pictures, options.patch);
  if (patches.size() < options.codes || options.codes == 0)
    return failure{"codebook: the pictures have " + std::to_string(patches.size()) +
                   " different patches, which give no " + std::to_string(options.codes) +
                   " codes; ask for fewer"};
  auto random = stream(options.seed, "codebook");
  codebook out{options.patch, *side, {}};
  const auto width = out.width();
  out.entries = spread_entries(patches.values, patches.counts, width, options.codes, random);
  for (std::size_t pass = 1; pass <= options.passes; ++pass) {
    nearest_entry nearest(out.entries, width);
    std::vector<double> sums(out.entries.size()), counts(options.codes), errors(patches.size());
    double error = 0, total = 0;
    for (std::size_t i = 0; i < patches.size(); ++i) {
      const auto k = nearest.find(patches[i]);
      errors[i] =
          patches.counts[i] * squared_distance(patches[i], out.entries.data() + k * width, width);
      error += errors[i];
      total += patches.counts[i];
      counts[k] += patches.counts[i];
      for (std::size_t j = 0; j < width; ++j)
        sums[k * width + j] += patches.counts[i] * patches[i][j];
    }
    for (std::size_t k = 0; k < options.codes; ++k) {
      if (counts[k] > 0) {
        for (std::size_t j = 0; j < width; ++j)
          out.entries[k * width + j] = static_cast<float>(sums[k * width + j] / counts[k]);
        continue;
      }
      const auto worst =
          static_cast<std::size_t>(std::max_element(errors.begin(), errors.end()) - errors.begin());
      std::copy_n(patches[worst], width, out.entries.data() + k * width);
      errors[worst] = 0;
    }
    if (progress) progress(pass, psnr(error / (total * static_cast<double>(width))));
  }
  return out;
}

} // namespace shoal::learn
