#include "actors/experts/trunk_rounds.hpp"

#include "actors/host.hpp"
#include "kernels/base/check.hpp"

#include <chrono>
#include <utility>

namespace shoal::actors {

trunk_rounds::trunk_rounds(trunk_rounds_config how, duration every, rng draws)
    : how_(std::move(how)), every_ns_(std::chrono::nanoseconds(every).count()),
      place_(how_.grid, draws),
      gathering_(4 * how_.averaging.poll_interval, how_.averaging.matchmaking_time) {
  SHOAL_CHECK(every_ns_ > 0, "rounds take time");
  // A trainer that is alone has nothing to average.
  how_.averaging.min_group_size = std::max(2U, how_.averaging.min_group_size);
}

duration trunk_rounds::until_next(std::int64_t utc_ns) const {
  return std::chrono::nanoseconds(every_ns_ - utc_ns % every_ns_);
}

round_request trunk_rounds::begin(const host& here, trunk now, std::uint64_t epoch,
                                  caf::actor dht) {
  SHOAL_CHECK(!running(), "a trainer is in one round");
  round_request out;
  out.epoch = epoch;
  out.state = place_.group(static_cast<std::uint64_t>(here.utc_ns() / every_ns_));
  out.values = payload{*now};
  out.weight = 1;
  out.codecs = how_.codecs;
  out.must_be_finite = true;
  out.rate_up = here.rate_up();
  out.rate_down = here.rate_down();
  out.wanted = how_.grid.side;
  out.max_wait = gathering_.value();
  out.dht = std::move(dht);
  failing_.prepare(out);
  contributed_ = std::move(now);
  return out;
}

std::optional<std::vector<float>> trunk_rounds::end(const round_result& result,
                                                    const std::vector<float>& now) {
  const auto from = std::exchange(contributed_, nullptr);
  if (result.gathered > duration{}) gathering_.measured(result.gathered);
  failing_.learn(result);
  if (!from || !result.succeeded() || result.values.floats().size() != now.size()) {
    place_.move_at_random();
    return std::nullopt;
  }
  place_.move_to(place_.digit_after(result));
  const auto average = result.values.floats();
  std::vector<float> out(now.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = average[i] + (now[i] - (*from)[i]);
  return out;
}

} // namespace shoal::actors
