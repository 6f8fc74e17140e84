// The averaging strategy 'ring'. In a round each peer sends its values to both neighbours on a
// ring. It moves by a third of the difference to each neighbour. A difference counts at both ends
// or at none, so that the mean of all peers stays. The expected distortion after t rounds is
//   sum_{k=1}^{N-1} ((1 + 2 cos(2 pi k / N)) / 3)^(2t) / (N - 1).
#include "actors/averaging/averager.hpp"
#include "actors/averaging/averaging_strategy.hpp"
#include "actors/message_registry.hpp"
#include "actors/payload_inspect.hpp"

#include <array>
#include <cmath>
#include <numbers>

namespace extension {
using namespace shoal;
using namespace shoal::actors;

/// The sender's values at the beginning of the round.
struct ring_values {
  std::uint64_t round = 0;
  payload values; // floats
  SHOAL_MESSAGE(ring_values, x.round, x.values)
};
using ring_messages = message_list<row<ring_values, traffic::averaging, scope::remote>>;

class ring_averager final : public averager {
public:
  using averager::averager;

private:
  caf::message_handler handlers() override {
    return {[this](const ring_values& m) {
      const std::size_t side = sent_by(neighbour(0)) ? 0 : 1;
      if (m.round != round() || !running()) return; // the sender gets no values either
      if (!sent_by(neighbour(side)) || !fits(m.values) || !came_[side].empty())
        return misbehaviour(0, "values of no neighbour, of another length, or twice");
      came_[side] = m.values;
      if (!came_[0].empty() && !came_[1].empty()) finish(outcome::ok);
    }};
  }
  void begin(const averaging_round&) override {
    if (options().everyone->size() < 3) return over(outcome::ok); // no ring
    came_ = {};
    for (std::size_t side : {0, 1}) send(neighbour(side), ring_values{round(), values_});
    set_round_timer(options().round.sender_timeout, 0);
  }
  void on_timer(std::uint32_t) override { finish(outcome::partial, reason::sender_timeout); }

  void finish(outcome how, reason why = reason::none) {
    std::vector<float> mine(values_.floats().begin(), values_.floats().end());
    for (const auto& other : came_)
      if (!other.empty())
        for (std::size_t i = 0; i < mine.size(); ++i)
          mine[i] += (other.floats()[i] - values_.floats()[i]) / 3;
    values_ = payload{std::move(mine)};
    over(how, why);
  }
  const caf::actor& neighbour(std::size_t side) const {
    const auto& all = *options().everyone;
    return all[(options().index + (side == 0 ? 1 : all.size() - 1)) % all.size()];
  }
  std::array<payload, 2> came_; // this round's, by side
};

averaging_strategy ring_strategy() {
  add_messages<ring_messages>();
  averaging_strategy out;
  out.name = "ring";
  out.meaning = "each peer and its two neighbours on a ring move towards each other";
  out.spawn = spawn_averager<ring_averager>;
  out.theory = [](const averaging_swarm& swarm, std::uint64_t t, double) -> std::optional<double> {
    const auto n = static_cast<double>(swarm.peers);
    if (swarm.failure > 0 || n < 3) return std::nullopt;
    double sum = 0;
    for (double k = 1; k < n; ++k)
      sum += std::pow((1 + 2 * std::cos(2 * std::numbers::pi * k / n)) / 3,
                      2 * static_cast<double>(t));
    return sum / (n - 1);
  };
  return out;
}

} // namespace extension
