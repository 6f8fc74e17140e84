#include "scenarios/experts/expert_data.hpp"

#include "kernels/base/rng.hpp"
#include "kernels/learn/image_ends.hpp"
#include "scenarios/experts/made_up_images.hpp"
#include "scenarios/workloads/image_samples.hpp"

#include <span>
#include <utility>

#if SHOAL_WITH_LEARN
#include "kernels/learn/text.hpp"
#include "kernels/learn/text_trunk.hpp"
#endif

namespace shoal::scenarios {

namespace {

constexpr std::size_t held_out_images = 500; // made-up ones
constexpr std::uint64_t held_out_first = std::uint64_t{1} << 60;

expert_data made_up(const experts_options& what, std::uint64_t seed) {
  const auto images = std::make_shared<const made_up_images>(seed, what.size, what.classes);
  expert_data out;
  out.samples = [images, batch = what.batch](std::size_t trainer, std::uint64_t step) {
    return images->samples((std::uint64_t{trainer} << 40) + step * batch, batch);
  };
  out.held_out = images->samples(held_out_first, held_out_images);
  return out;
}

result<expert_data> images_of(const experts_options& what, std::uint64_t seed) {
  auto read = read_image_samples(what.images, what.labels, {what.size, what.classes, "experts"});
  if (!read) return failure{read.error()};
  const auto all = std::make_shared<const image_samples>(std::move(*read));
  expert_data out;
  out.samples = [all, seed, batch = what.batch](std::size_t trainer, std::uint64_t step) {
    auto random = stream(seed, "experts.batch", trainer, step);
    std::vector<std::byte> drawn;
    for (std::size_t n = 0; n < batch; ++n) {
      const auto one = all->sample(random.below(all->training));
      drawn.insert(drawn.end(), one.begin(), one.end());
    }
    return drawn;
  };
  const auto held_out = std::span(all->all).subspan(all->training * all->bytes);
  out.held_out.assign(held_out.begin(), held_out.end());
  return out;
}

#if SHOAL_WITH_LEARN
constexpr std::uint64_t held_out_windows = 256; // at most

result<expert_data> text_of(const experts_options& what, std::uint64_t seed) {
  learn::text_options options;
  options.context = static_cast<std::int64_t>(what.context);
  options.holdout = what.holdout;
  options.seed = seed;
  auto read = learn::text_corpus::load(what.text, options);
  if (!read) return failure{"experts.text: " + read.error()};
  const auto corpus = std::make_shared<const learn::text_corpus>(std::move(*read));
  auto ends = learn::make_text_trunk({.layers = static_cast<std::int64_t>(what.trunk_layers),
                                      .heads = static_cast<std::int64_t>(what.heads),
                                      .dim = static_cast<std::int64_t>(what.width),
                                      .context = options.context},
                                     learn::text_row::token);
  if (!ends) return failure{ends.error()};
  expert_data out;
  out.ends = std::move(*ends);
  out.counts_right = false;
  // Trainers take turns in the endless sequence, so no window comes twice before all came once.
  out.samples = [corpus, batch = what.batch, trainers = what.trainers](std::size_t trainer,
                                                                       std::uint64_t step) {
    std::vector<std::byte> drawn;
    for (std::uint64_t n = 0; n < batch; ++n) {
      const auto one = corpus->sample((step * trainers + trainer) * batch + n);
      drawn.insert(drawn.end(), one.begin(), one.end());
    }
    return drawn;
  };
  out.held_out = corpus->held_out_samples(held_out_windows);
  return out;
}
#else
result<expert_data> text_of(const experts_options&, std::uint64_t) {
  return failure{"experts.text: this program was built without libtorch, which learns texts"};
}
#endif

} // namespace

result<expert_data> expert_data_of(const experts_options& what, std::uint64_t seed) {
  if (!what.text.empty()) return text_of(what, seed);
  auto out = what.images.empty() ? result<expert_data>(made_up(what, seed)) : images_of(what, seed);
  if (out)
    out->ends =
        learn::make_image_ends({.pixels = what.size, .classes = what.classes, .width = what.width});
  return out;
}

} // namespace shoal::scenarios
