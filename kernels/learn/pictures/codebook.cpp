#include "kernels/learn/pictures/codebook.hpp"

#include "kernels/base/rng.hpp"
#include "kernels/learn/pictures/nearest_entry.hpp"
#include "kernels/learn/pictures/patches.hpp"

#include <algorithm>
#include <map>
#include <string>

namespace shoal::learn {

namespace {

/// Different patches and how often each occurs.
struct patch_counts {
  std::size_t width = 0;
  std::vector<float> values;
  std::vector<double> counts;
  std::size_t size() const { return counts.size(); }
  const float* operator[](std::size_t i) const { return values.data() + i * width; }
};

patch_counts count_patches(std::span<const picture> pictures, const coder_grid& grid) {
  patch_counts out{grid.patch_values(), {}, {}};
  std::map<std::vector<float>, std::size_t> places;
  for (const auto& from : pictures) {
    const auto patches = patches_of(from, grid);
    for (auto one = patches.begin(); one != patches.end();) {
      const auto next = one + static_cast<std::ptrdiff_t>(out.width);
      const auto [place, added] = places.try_emplace({one, next}, out.size());
      if (added) {
        out.values.insert(out.values.end(), one, next);
        out.counts.push_back(0);
      }
      out.counts[place->second] += 1;
      one = next;
    }
  }
  return out;
}

} // namespace

std::vector<token_id> codebook::encode(const picture& from) const {
  return codes_of(patches_of(from, grid()), entries, width());
}

picture codebook::decode(std::span<const token_id> codes) const {
  return picture_of(entries_of(codes, entries, width()), grid());
}

result<codebook> train_codebook(std::span<const picture> pictures, const codebook_training& options,
                                const std::function<void(std::size_t, double)>& progress) {
  const auto side = patches_on_a_side(pictures, options.patch);
  if (!side) return failure{side.error()};
  const auto patches = count_patches(pictures, {options.patch, *side, options.codes});
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
