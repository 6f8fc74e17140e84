#include "actors/training/contribution.hpp"

#include "actors/training/low_rank_workload.hpp"
#include "kernels/base/check.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace shoal::actors {

namespace {

/// The value ranges of the result that include this member's data.
std::vector<kernels::power_sgd::stretch> taken_of(const round_result& result) {
  std::vector<kernels::power_sgd::stretch> out;
  for (const auto& part : result.parts) {
    if (!std::binary_search(part.senders.begin(), part.senders.end(), result.member)) continue;
    if (!out.empty() && out.back().end == part.begin)
      out.back().end = part.end;
    else
      out.push_back({part.begin, part.end});
  }
  return out;
}

/// Makes the round fail for this peer with `not_finite`, as a round without PowerSGD would.
void spoil(std::vector<float>& values) {
  std::fill(values.begin(), values.end(), std::numeric_limits<float>::quiet_NaN());
}

} // namespace

payload contribution::zeros(std::uint64_t count) {
  if (work_->is_size_only()) return payload::size_only(4 * count);
  if (zeros_.size() < 4 * count) zeros_ = payload{std::vector<float>(count)};
  return zeros_.slice(0, 4 * count);
}

void contribution::begin(const model_state& at, std::span<const double> sum, std::uint64_t samples,
                         round_request& request) {
  const auto* how = work_->low_rank();
  request.codecs = codecs_.first;
  request.must_be_finite = how != nullptr;
  round_.reset();
  if (how != nullptr) {
    request.second.value_count = how->second_round();
    request.second.codecs = codecs_.second;
    request.second.values = [nothing = zeros(how->second_round())](const payload&) {
      return nothing;
    };
  }
  if (samples == 0 || work_->is_size_only()) {
    request.values = zeros(how != nullptr ? how->first_round() : work_->value_count());
    return;
  }
  if (how == nullptr && !feeds_back()) {
    request.values = mean_gradient(sum, samples);
    return;
  }
  round_ = std::make_shared<round>();
  round_->samples = samples;
  auto& given = round_->given;
  given.resize(sum.size());
  const auto weight = static_cast<double>(samples);
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const double kept = residual_.empty() ? 0 : residual_[i];
    given[i] = static_cast<float>((sum[i] + kept) / weight);
  }
  if (how == nullptr) {
    request.values = payload{std::vector<float>(given)};
    return;
  }
  std::vector<float> p(how->first_round());
  if (!how->project(given, q_of(*how, at), p)) spoil(p);
  request.values = payload{std::move(p)};
  request.second.values = [work = work_, ours = round_](const payload& mean) {
    const auto& how = *work->low_rank();
    ours->p.assign(mean.floats().begin(), mean.floats().end());
    ours->q.resize(how.second_round());
    if (!how.orthogonalise(ours->p) || !how.second(ours->given, ours->p, ours->q)) spoil(ours->q);
    return payload{std::vector<float>(ours->q)};
  };
}

void contribution::averaged(const round_result& result) {
  const auto ours = std::exchange(round_, nullptr);
  if (!ours) return;
  residual_.resize(ours->given.size());
  const auto taken = taken_of(result);
  const auto weight = static_cast<double>(ours->samples);
  if (const auto* how = work_->low_rank()) {
    how->keep(ours->given, ours->p, ours->q, taken, weight, residual_);
    return;
  }
  const auto sent = result.given.floats();
  SHOAL_CHECK(sent.size() == residual_.size(), "the contribution has the size of the gradient");
  for (const auto& [begin, end] : taken)
    for (auto i = begin; i < end; ++i)
      residual_[i] = static_cast<float>(weight * (double{ours->given[i]} - double{sent[i]}));
}

} // namespace shoal::actors
