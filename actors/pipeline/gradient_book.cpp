#include "actors/pipeline/gradient_book.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <iterator>

namespace shoal::actors {

void gradient_book::hold(pass_id pass, std::uint32_t hop, std::uint64_t samples,
                         std::vector<float> values) {
  if (counted_.contains({pass, hop})) return;
  const auto first = held_.lower_bound({{pass.trainer, 0}, 0});
  const auto end = std::find_if(
      first, held_.end(), [&](const auto& one) { return one.first.first.trainer != pass.trainer; });
  if (!held_.contains({pass, hop}) &&
      std::distance(first, end) >= static_cast<std::ptrdiff_t>(most_held))
    held_.erase(first);
  held_.insert_or_assign(key{pass, hop}, gradient{samples, std::move(values)});
}

gradient_book::answer gradient_book::count(pass_id pass, std::uint32_t hop) {
  const key what{pass, hop};
  if (counted_.contains(what)) return answer::repeated;
  const auto found = held_.extract(what);
  if (!found) return answer::unknown;
  auto& mine = samples_of_[pass.trainer];
  if (most_counted_ > 0 && mine + found.mapped().samples > most_counted_) return answer::unknown;
  mine += found.mapped().samples;
  const auto& values = found.mapped().values;
  if (sum_.empty()) sum_.resize(values.size());
  SHOAL_CHECK(sum_.size() == values.size(), "the gradients of a stage have one size");
  for (std::size_t i = 0; i < values.size(); ++i) sum_[i] += static_cast<double>(values[i]);
  samples_ += found.mapped().samples;
  counted_.insert(what);
  return answer::counted;
}

std::vector<float> gradient_book::mean() const {
  std::vector<float> out(sum_.size());
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<float>(sum_[i] / static_cast<double>(samples_));
  return out;
}

} // namespace shoal::actors
