// The strategy 'gossip': each peer offers its values to a random peer, and both hold the mean of
// the two afterwards. The asked peer moves by half of the difference and answers with it, so that
// only a lost answer can change the mean of all. A peer that waits for an answer refuses offers of
// others. An offer is tried three times, each at a random time, because simultaneous offers of all
// peers are all refused. Source: Boyd et al., "Randomized Gossip Algorithms", IEEE Trans. Inf.
// Theory 52 (2006).
#include "actors/averaging/averager.hpp"
#include "actors/averaging/averager_messages.hpp"
#include "actors/averaging/averaging_strategy.hpp"
#include "actors/averaging/deadline.hpp"

#include <cmath>
#include <map>

namespace shoal::actors {

namespace {

constexpr unsigned most_tries = 3;
constexpr std::size_t most_open = 64;

class gossip_averager final : public averager {
public:
  gossip_averager(caf::actor_config& config, host& on, averager_config with)
      : averager(config, on, std::move(with)), draws_(on.random_stream("averager")),
        answering_(options().min_timeout, options().round.sender_timeout) {}

  void on_exit() override {
    asked_ = nullptr;
    open_.clear();
    averager::on_exit();
  }

private:
  enum timer : std::uint32_t { timed_out, offer_now };

  caf::message_handler handlers() override {
    return {[this](const gossip_offer& m) { on_offer(m); },
            [this](const gossip_answer& m) { on_answer(m); }};
  }

  void begin(const averaging_round&) override {
    tries_ = 0;
    offer_later();
  }

  void on_timer(std::uint32_t kind) override {
    if (kind == offer_now) return offer();
    if (!asked_) return;
    answering_.ran_out();
    asked_ = nullptr;
    offer_later();
  }

  void on_offer(const gossip_offer& m) {
    if (!available() || !current_sender()) return;
    // Two peers that wait for each other would count the same difference twice.
    if (asked_) return send(sender(), gossip_answer{m.token, {}});
    if (!fits(m.values))
      return sender_misbehaves("gossip of another vector, or of numbers that are none");
    std::vector<float> mine(values_.floats().begin(), values_.floats().end()), half(mine.size());
    for (std::size_t i = 0; i < mine.size(); ++i) {
      half[i] = (m.values.floats()[i] - mine[i]) / 2;
      mine[i] += half[i];
    }
    values_ = payload{std::move(mine)};
    send(sender(), gossip_answer{m.token, payload{std::move(half)}});
  }

  void on_answer(const gossip_answer& m) {
    const auto found = open_.find(m.token);
    if (found == open_.end() || !sent_by(found->second))
      return sender_misbehaves("an answer that nobody asked for");
    open_.erase(found);
    const bool current = asked_ && m.token == token_;
    if (current) {
      asked_ = nullptr;
      answering_.measured(now() - begun_);
    }
    if (!m.half.empty()) {
      if (!fits(m.half))
        return sender_misbehaves("half of another vector, or of numbers that are none");
      // A late answer counts as well: the asked peer has moved.
      std::vector<float> mine(values_.floats().begin(), values_.floats().end());
      for (std::size_t i = 0; i < mine.size(); ++i) mine[i] -= m.half.floats()[i];
      values_ = payload{std::move(mine)};
    }
    if (!current || !running()) return;
    if (!m.half.empty()) return over(outcome::ok);
    offer_later();
  }

  void offer_later() {
    if (options().everyone->size() < 2) return over(outcome::ok);
    if (tries_++ == most_tries) return over(outcome::failed, reason::group_too_small);
    const auto span = 4 * (answering_.known() ? answering_.value() : options().min_timeout);
    const auto wait = draws_.below(static_cast<std::uint64_t>(span.count()));
    set_round_timer(duration{static_cast<std::int64_t>(wait)}, offer_now);
  }

  void offer() {
    const auto& all = *options().everyone;
    auto to = static_cast<std::uint32_t>(draws_.below(all.size() - 1));
    to += to >= options().index ? 1 : 0;
    asked_ = all[to];
    token_ = round() * most_tries + tries_;
    if (open_.size() >= most_open) open_.erase(open_.begin());
    open_[token_] = asked_;
    begun_ = now();
    send(asked_, gossip_offer{token_, values_});
    set_round_timer(answering_.value(), timed_out);
  }

  rng draws_;
  adaptive_deadline answering_;
  duration begun_{};
  caf::actor asked_; // the peer whose answer this one waits for
  std::uint64_t token_ = 0;
  unsigned tries_ = 0;
  std::map<std::uint64_t, caf::actor> open_; // unanswered offers, also of rounds that are over
};

} // namespace

averaging_strategy gossip_strategy() {
  averaging_strategy out;
  out.name = "gossip";
  out.meaning = "each peer and a random one take the mean of both";
  out.spawn = spawn_averager<gossip_averager>;
  out.theory = [](const averaging_swarm& swarm, std::uint64_t, double done) {
    return std::optional(std::pow(kernels::pair_factor(static_cast<double>(swarm.peers)), done));
  };
  return out;
}

} // namespace shoal::actors
