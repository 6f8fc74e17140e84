#include "actors/training/outer_rule.hpp"

#include "kernels/reduce_weighted_mean.hpp"

#include <utility>
#include <vector>

namespace shoal::actors {

namespace {

bool is_finite(const payload& of) {
  return of.is_size_only() || of.empty() || kernels::all_finite(of.floats());
}

} // namespace

payload shifted(const payload& now, const payload& from, payload to) {
  if (now.is_size_only() || now.empty() || now.bytes().data() == from.bytes().data()) return to;
  std::vector<float> out(now.floats().begin(), now.floats().end());
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = to.floats()[i] + (out[i] - from.floats()[i]);
  return payload{std::move(out)};
}

payload delta_rule::contribution(const model_state& own, const model_state&) const {
  if (!with_optimizer_ || own.optimizer.empty()) return own.parameters;
  const auto size = own.parameters.size() + own.optimizer.size();
  if (own.parameters.is_size_only()) return payload::size_only(size);
  const auto a = own.parameters.floats(), b = own.optimizer.floats();
  std::vector<float> out(a.begin(), a.end());
  out.insert(out.end(), b.begin(), b.end());
  return payload{std::move(out)};
}

outer_rule::result delta_rule::after(const averaged_round& round, const workload& work) const {
  auto next = round.now;
  const auto split = round.now.parameters.size();
  const auto mean = round.mean.slice(0, split);
  next.parameters = shifted(round.now.parameters, round.contributed.parameters, mean);
  // The optimizer's state becomes its mean. With a difference added, second moments could become
  // negative.
  if (round.mean.size() > split)
    next.optimizer = work.repaired(round.mean.slice(split, round.mean.size() - split));
  if (is_finite(next.parameters) && is_finite(next.optimizer)) return {next, next};
  // The next round refuses the peer's own state. The peer then goes back to the shared one.
  auto shared = round.contributed;
  shared.parameters = mean;
  if (round.mean.size() > split) shared.optimizer = next.optimizer;
  return {std::move(shared), std::move(next)};
}

} // namespace shoal::actors
