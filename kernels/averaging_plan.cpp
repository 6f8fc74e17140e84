#include "kernels/averaging_plan.hpp"

#include "kernels/base/check.hpp"
#include "kernels/linear_program.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

namespace shoal::kernels {

namespace {

/// The most linear programs that make the plan even. 64 reducers need as many, and a larger group
/// is not worth more.
constexpr int most_rounds = 64;
constexpr double never = std::numeric_limits<double>::infinity();

/// The load of a peer with share w on one line: fixed + slope * w, at `rate`.
struct line {
  double fixed = 0;
  double slope = 0;
  double rate = 0;

  double seconds(double share) const {
    const auto load = fixed + slope * share;
    return load <= 0 ? 0 : rate > 0 ? load / rate : never;
  }
};

struct lines {
  line up;
  line down;
};

std::vector<lines> lines_of(std::span<const averaging_peer> peers) {
  double senders = 0, receivers = 0;
  for (const auto& peer : peers) senders += peer.contributes, receivers += peer.receives;
  std::vector<lines> out;
  out.reserve(peers.size());
  for (const auto& peer : peers) {
    const double c = peer.contributes, r = peer.receives;
    out.push_back({{c, receivers - r - c, peer.up}, {r, senders - c - r, peer.down}});
  }
  return out;
}

result<void> check(std::span<const averaging_peer> peers, std::span<const pair_limit> limits) {
  const auto usable = [](double rate) {
    return rate == 0 || (rate >= slowest_rate && rate <= fastest_rate);
  };
  bool sender = false, receiver = false, reducer = false;
  for (std::size_t i = 0; i < peers.size(); ++i) {
    const auto& peer = peers[i];
    const auto wrong = [&](const char* why) {
      return failure{"no averaging plan: peer " + std::to_string(i) + why};
    };
    if (!usable(peer.up) || !usable(peer.down))
      return wrong(" has a rate that is neither 0 nor from 0.001 to 1e15 bit/s");
    if (peer.contributes && peer.up == 0) return wrong(" has values to send and no uplink");
    if (peer.receives && peer.down == 0) return wrong(" wants the result and has no downlink");
    sender |= peer.contributes, receiver |= peer.receives, reducer |= peer.reduces;
  }
  if (!sender) return failure{"no averaging plan: no peer has values to send"};
  if (!receiver) return failure{"no averaging plan: no peer wants the result"};
  if (!reducer) return failure{"no averaging plan: no peer can reduce"};
  for (const auto& limit : limits)
    if (limit.from >= peers.size() || limit.to >= peers.size() || limit.from == limit.to ||
        !usable(limit.rate))
      return failure{"no averaging plan: the limit from peer " + std::to_string(limit.from) +
                     " to peer " + std::to_string(limit.to) +
                     " is of unknown peers, or neither 0 nor from 0.001 to 1e15 bit/s"};
  return {};
}

/// The shares that a peer may have if its lines are to be free again after `seconds`.
struct range {
  double lower = 0;
  double upper = 0;
  bool empty() const { return lower > upper; }
};

range shares_within(const averaging_peer& peer, const lines& its, double seconds) {
  range out{0, peer.reduces ? 1.0 : 0.0};
  for (const auto& line : {its.up, its.down}) {
    const auto room = line.rate * seconds - line.fixed;
    if (line.slope > 0)
      out.upper = std::min(out.upper, room < 0 ? -1 : room / line.slope);
    else if (line.slope < 0) // the only sender or the only receiver needs no line for its own part
      out.lower = std::max(out.lower, room / line.slope);
    else if (room < 0)
      out.upper = -1;
  }
  return out;
}

/// The smallest number for which `enough` is true, to the last bit; infinity if there is none.
/// Requires: once true, `enough` stays true for larger numbers.
template <class Predicate>
double first_with(Predicate enough) {
  if (enough(0.0)) return 0;
  double high = 1;
  if (enough(high)) {
    while (enough(high / 2)) high /= 2;
  } else {
    do high *= 2;
    while (std::isfinite(high) && !enough(high));
    if (!std::isfinite(high)) return never;
  }
  double low = high / 2;
  while (true) {
    const auto middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) return high;
    (enough(middle) ? high : low) = middle;
  }
}

bool possible_within(std::span<const averaging_peer> peers, const std::vector<lines>& all,
                     double seconds) {
  double least = 0, most = 0;
  for (std::size_t i = 0; i < peers.size(); ++i) {
    const auto shares = shares_within(peers[i], all[i], seconds);
    if (shares.empty()) return false;
    least += shares.lower, most += shares.upper;
  }
  return least <= 1 && most >= 1;
}

void make_sum_one(std::vector<double>& shares) {
  for (auto& share : shares) share = std::max(share, 0.0);
  const auto sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (auto& share : shares) share /= sum;
}

averaging_plan plan_of(std::span<const averaging_peer> peers, std::span<const pair_limit> limits,
                       std::vector<double> shares) {
  make_sum_one(shares);
  const auto seconds = seconds_per_bit(peers, limits, shares);
  return {std::move(shares), seconds};
}

double seconds_of(const averaging_peer& sender, const averaging_peer& receiver, double rate,
                  double sender_share, double receiver_share) {
  return line{(sender.contributes ? receiver_share : 0) + (receiver.receives ? sender_share : 0), 0,
              rate}
      .seconds(0);
}

/// The linear program whose last variable is the time, in units of `unit` seconds, that a set of
/// rows has to meet. Pair limits become rows when a solution breaks them: most limits never do.
class program {
public:
  program(std::span<const averaging_peer> peers, std::span<const pair_limit> limits, double unit)
      : peers_(peers), limits_(limits), all_(lines_of(peers)), unit_(unit), time_(peers.size()),
        added_(limits.size()) {
    linear_.variables.resize(peers.size() + 1);
    linear_.variables[time_].cost = 1;
    linear_program::row whole{{}, 1, 1};
    for (std::size_t i = 0; i < peers.size(); ++i) {
      linear_.variables[i].upper = peers[i].reduces ? 1 : 0;
      whole.terms.push_back({i, 1});
    }
    linear_.rows.push_back(std::move(whole));
    for (const auto& limit : limits) {
      if (limit.rate > 0) continue;
      if (peers[limit.from].contributes) linear_.variables[limit.to].upper = 0;
      if (peers[limit.to].receives) linear_.variables[limit.from].upper = 0;
    }
    for (std::size_t i = 0; i < peers.size(); ++i)
      for (const auto& line : {all_[i].up, all_[i].down}) linear_.rows.push_back(row_of(i, line));
  }

  bool somebody_reduces() const {
    return std::any_of(linear_.variables.begin(), linear_.variables.end() - 1,
                       [](const auto& variable) { return variable.upper > 0; });
  }

  /// The shares for which the rows that are not yet settled take the shortest time.
  result<std::vector<double>> minimise() {
    while (true) {
      auto solved = kernels::minimise(linear_, solution_.values.empty() ? nullptr : &solution_);
      if (!solved) return failure{"no averaging plan: " + solved.error()};
      solution_ = std::move(*solved);
      if (!add_broken_limits())
        return std::vector<double>(solution_.values.begin(), solution_.values.end() - 1);
    }
  }

  /// From now on the pair limits, and the lines of the peers that do not reduce, have to meet
  /// `seconds`.
  void settle_others(double seconds) {
    limit_seconds_ = seconds;
    for (std::size_t k = first_limit_row(); k < linear_.rows.size(); ++k) settle(k, seconds);
    for (std::size_t i = 0; i < peers_.size(); ++i)
      if (linear_.variables[i].upper == 0)
        settle(up_row(i), seconds), settle(up_row(i) + 1, seconds);
  }

  /// Fixes the time of the lines that no equally good solution relieves. Returns false if no other
  /// lines are left, or if these need no time.
  bool settle_tight_lines() {
    const auto seconds = solution_.values[time_] * unit_ +
                         1e-10 * limit_seconds_; // rounding must not forbid the found solution
    double largest = 0;
    for (std::size_t row = up_row(0); row < first_limit_row(); ++row)
      if (!settled(row)) largest = std::max(largest, -solution_.duals[row]);
    if (largest <= 0) return false;
    bool left = false;
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      // A dual that is small beside the others may come from rounding.
      const auto its_dual = [&](std::size_t row) {
        return settled(row) ? 0 : -solution_.duals[row];
      };
      const bool tight = std::max(its_dual(up_row(i)), its_dual(up_row(i) + 1)) >= 1e-3 * largest;
      for (auto row : {up_row(i), up_row(i) + 1}) {
        if (tight) settle(row, seconds);
        left |= !settled(row);
      }
    }
    return left;
  }

private:
  static std::size_t up_row(std::size_t peer) { return 1 + 2 * peer; }
  std::size_t first_limit_row() const { return 1 + 2 * peers_.size(); }

  /// fixed + slope w <= rate * time, divided by rate * unit, so that a tolerance is a tolerance of
  /// the time.
  linear_program::row row_of(std::size_t peer, const line& what) const {
    const auto scale = what.rate > 0 ? 1 / (what.rate * unit_) : 1;
    linear_program::row out{{}, -unbounded, -what.fixed * scale};
    if (what.slope != 0) out.terms.push_back({peer, what.slope * scale});
    if (what.rate > 0) out.terms.push_back({time_, -1});
    return out;
  }

  bool settled(std::size_t row) const {
    const auto& terms = linear_.rows[row].terms;
    return terms.empty() || terms.back().variable != time_;
  }

  void settle(std::size_t row, double seconds) {
    if (settled(row)) return;
    linear_.rows[row].terms.pop_back();
    linear_.rows[row].upper += seconds / unit_;
  }

  /// Adds, for each receiving peer, the worst of the limits that the solution breaks. The others
  /// often hold as soon as these do.
  bool add_broken_limits() {
    const auto seconds = limit_seconds_ > 0 ? limit_seconds_ : solution_.values[time_] * unit_;
    std::vector<double> worst(peers_.size(), seconds * (1 + 1e-10));
    std::vector<std::size_t> which(peers_.size(), limits_.size());
    for (std::size_t k = 0; k < limits_.size(); ++k) {
      const auto& [from, to, rate] = limits_[k];
      if (rate == 0 || added_[k]) continue;
      const auto needs =
          seconds_of(peers_[from], peers_[to], rate, solution_.values[from], solution_.values[to]);
      if (needs > worst[to]) worst[to] = needs, which[to] = k;
    }
    bool broken = false;
    for (const auto k : which) {
      if (k == limits_.size()) continue;
      const auto& [from, to, rate] = limits_[k];
      linear_program::row row{{}, -unbounded, 0};
      if (peers_[from].contributes) row.terms.push_back({to, 1 / (rate * unit_)});
      if (peers_[to].receives) row.terms.push_back({from, 1 / (rate * unit_)});
      row.terms.push_back({time_, -1});
      linear_.rows.push_back(std::move(row));
      if (limit_seconds_ > 0) settle(linear_.rows.size() - 1, limit_seconds_);
      added_[k] = broken = true;
    }
    return broken;
  }

  std::span<const averaging_peer> peers_;
  std::span<const pair_limit> limits_;
  std::vector<lines> all_;
  double unit_;
  std::size_t time_;
  std::vector<bool> added_;
  double limit_seconds_ = 0;
  linear_program linear_;
  linear_solution solution_;
};

} // namespace

double seconds_per_bit(std::span<const averaging_peer> peers, std::span<const pair_limit> limits,
                       std::span<const double> shares) {
  SHOAL_CHECK(shares.size() == peers.size(), "each peer has a share");
  const auto all = lines_of(peers);
  double out = 0;
  for (std::size_t i = 0; i < peers.size(); ++i)
    out = std::max({out, all[i].up.seconds(shares[i]), all[i].down.seconds(shares[i])});
  for (const auto& [from, to, rate] : limits)
    out = std::max(out, seconds_of(peers[from], peers[to], rate, shares[from], shares[to]));
  return out;
}

result<averaging_plan> fill_lines(std::span<const averaging_peer> peers) {
  if (auto ok = check(peers, {}); !ok) return failure{ok.error()};
  const auto all = lines_of(peers);
  const auto best =
      first_with([&](double seconds) { return possible_within(peers, all, seconds); });
  if (std::isinf(best))
    return failure{"no averaging plan: no peer that can reduce has a line for it"};

  // The shares at `level`, except that an only sender or receiver gets what the best time requires.
  const auto filled = [&](double level) {
    std::vector<double> out;
    out.reserve(peers.size());
    for (std::size_t i = 0; i < peers.size(); ++i)
      out.push_back(std::max(shares_within(peers[i], all[i], level).upper,
                             std::max(0.0, shares_within(peers[i], all[i], best).lower)));
    return out;
  };
  const auto sum = [](const std::vector<double>& shares) {
    return std::accumulate(shares.begin(), shares.end(), 0.0);
  };
  const auto level = first_with(
      [&](double x) { return sum(filled(x)) >= 1; }); // not above `best`, where the condition holds
  auto shares = filled(level);
  // A share whose load does not depend on its size appears as a whole at one level. Just below that
  // level its peer has no share.
  const auto below = filled(std::nextafter(level, 0.0));
  if (const auto low = sum(below), high = sum(shares); high > 1 && high > low && low < 1)
    for (std::size_t i = 0; i < shares.size(); ++i)
      shares[i] = below[i] + (shares[i] - below[i]) * (1 - low) / (high - low);
  return plan_of(peers, {}, std::move(shares));
}

result<averaging_plan> plan_averaging(std::span<const averaging_peer> peers,
                                      std::span<const pair_limit> limits) {
  if (auto ok = check(peers, limits); !ok) return failure{ok.error()};
  // Without pair limits the time cannot be shorter than this. It gives the unit of time, and
  // usually the shares.
  auto filled = fill_lines(peers);
  if (!filled) return filled;
  if (filled->seconds_per_bit == 0) return filled; // one peer by itself
  program rounds(peers, limits, filled->seconds_per_bit);
  if (!rounds.somebody_reduces())
    return failure{
        "no averaging plan: no peer that can reduce has a way to all senders and receivers"};
  auto shares = rounds.minimise();
  if (!shares) return failure{shares.error()};
  auto best = plan_of(peers, limits, std::move(*shares));
  filled->seconds_per_bit = seconds_per_bit(peers, limits, filled->shares);
  if (filled->seconds_per_bit <= best.seconds_per_bit * (1 + 1e-9)) return filled;

  // Pair limits shape the plan: the lines' times are minimised in the same order, with one linear
  // program each.
  const auto seconds = best.seconds_per_bit * (1 + 1e-10);
  rounds.settle_others(seconds);
  for (int round = 0; round < most_rounds; ++round) {
    shares = rounds.minimise();
    if (!shares) break; // rounding: the last solution is as short, if not as even
    auto next = plan_of(peers, limits, std::move(*shares));
    if (next.seconds_per_bit <= seconds * (1 + 8e-10)) best = std::move(next);
    if (!rounds.settle_tight_lines()) break;
  }
  return best;
}

std::vector<double> without_small_shares(std::span<const double> shares, double smallest) {
  std::vector<double> out(shares.begin(), shares.end());
  make_sum_one(out);
  if (*std::max_element(out.begin(), out.end()) < smallest) return out;
  for (auto& share : out)
    if (share < smallest) share = 0;
  make_sum_one(out);
  return out;
}

} // namespace shoal::kernels
