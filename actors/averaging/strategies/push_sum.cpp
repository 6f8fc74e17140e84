// The strategy 'push-sum': a peer has sums of values and a weight w, 1 at first. In each round it
// shares both out equally among itself and its neighbours in the exponential graph. Its estimate is
// sums / w. A share that is not confirmed is taken back. Sources: Kempe, Dobra and Gehrke,
// "Gossip-Based Computation of Aggregate Information", FOCS 2003; Assran et al., "Stochastic
// Gradient Push", ICML 2019.
#include "actors/averaging/averager.hpp"
#include "actors/averaging/averager_messages.hpp"
#include "actors/averaging/averaging_strategy.hpp"
#include "actors/averaging/deadline.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

namespace shoal::actors {

namespace {

/// Doubles in a payload, bit by bit: the sums would not survive as floats.
payload pack(const std::vector<double>& values) {
  std::vector<std::byte> out(values.size() * sizeof(double));
  std::memcpy(out.data(), values.data(), out.size());
  return payload{std::move(out)};
}

class push_sum_averager final : public averager {
public:
  push_sum_averager(caf::actor_config& config, host& on, averager_config with)
      : averager(config, on, std::move(with)),
        answering_(options().min_timeout, options().round.sender_timeout) {}

  void on_exit() override {
    unconfirmed_.clear();
    averager::on_exit();
  }

private:
  enum timer : std::uint32_t { timed_out };

  caf::message_handler handlers() override {
    return {[this](const push_share& m) { on_share(m); },
            [this](push_received m) { on_receipt(m); }};
  }

  void on_hold() override {
    weight_ = 1;
    sums_.assign(values_.floats().begin(), values_.floats().end());
  }

  void begin(const averaging_round&) override {
    begun_ = now();
    const auto& all = *options().everyone;
    const auto to = kernels::exponential_neighbours(
        options().index, static_cast<std::uint32_t>(all.size()), round());
    if (to.empty()) return finish(outcome::ok);
    const double share = 1 / static_cast<double>(to.size() + 1);
    std::vector<double> part(sums_);
    part.push_back(weight_);
    for (auto& x : part) x *= share;
    for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] = part[i];
    weight_ = part.back();
    for (auto index : to) {
      unconfirmed_[++token_] = {all[index], part};
      send(all[index], push_share{token_, pack(part)});
    }
    set_round_timer(answering_.value(), timed_out);
  }

  /// Takes back the shares that were not confirmed.
  void on_timer(std::uint32_t) override {
    answering_.ran_out();
    for (auto& [token, share] : unconfirmed_) {
      weight_ += share.second.back();
      for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += share.second[i];
    }
    unconfirmed_.clear();
    finish(outcome::partial, reason::sender_lost);
  }

  void on_share(const push_share& m) {
    if (!available() || !current_sender()) return;
    if (m.sums.is_size_only() || m.sums.size() != (sums_.size() + 1) * sizeof(double))
      return sender_misbehaves("a share of another vector");
    std::vector<double> theirs(sums_.size() + 1);
    std::memcpy(theirs.data(), m.sums.bytes().data(), m.sums.size());
    if (!std::all_of(theirs.begin(), theirs.end(), [](double x) { return std::isfinite(x); }) ||
        theirs.back() <= 0)
      return sender_misbehaves("a share of numbers that are none, or without weight");
    weight_ += theirs.back();
    for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += theirs[i];
    send(sender(), push_received{m.token});
  }

  void on_receipt(push_received m) {
    const auto found = unconfirmed_.find(m.token);
    // A share that was taken back and yet arrived is in the swarm twice.
    if (found == unconfirmed_.end()) return;
    if (!sent_by(found->second.first)) return sender_misbehaves("a receipt for what another got");
    unconfirmed_.erase(found);
    if (!unconfirmed_.empty() || !running()) return;
    answering_.measured(now() - begun_);
    finish(outcome::ok);
  }

  void finish(outcome how, reason why = reason::none) {
    std::vector<float> estimate(sums_.size());
    for (std::size_t i = 0; i < sums_.size(); ++i)
      estimate[i] = static_cast<float>(sums_[i] / weight_);
    values_ = payload{std::move(estimate)};
    over(how, why);
  }

  double weight_ = 1;
  std::vector<double> sums_; // values * weight
  adaptive_deadline answering_;
  duration begun_{};
  std::uint64_t token_ = 0;
  std::map<std::uint64_t, std::pair<caf::actor, std::vector<double>>> unconfirmed_; // by token
};

} // namespace

averaging_strategy push_sum_strategy() {
  averaging_strategy out;
  out.name = "push-sum";
  out.meaning =
      "each peer shares its sums and its weight out to neighbours of an exponential graph";
  out.spawn = spawn_averager<push_sum_averager>;
  return out;
}

} // namespace shoal::actors
