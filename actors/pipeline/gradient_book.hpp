// The gradients of one peer of a stage, for one step. A computed gradient waits until the trainer
// that has asked for it says that it counts. The trainer says so to one peer of the stage. A
// micro-batch that two peers have computed, because one seemed dead, counts once.
//   hold(pass, hop) -> count(pass, hop): counted -> count(pass, hop) again: repeated
// No actor and no clock.
#pragma once

#include "actors/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace shoal::actors {

/// A micro-batch: the trainer that has drawn it, and its number there.
struct pass_id {
  peer_id trainer = 0;
  std::uint64_t number = 0;
  auto operator<=>(const pass_id&) const = default;
};

class gradient_book {
public:
  enum class answer : std::uint8_t { counted, repeated, unknown };

  /// The limit for the gradients of one trainer that wait. Each is as large as the stage.
  static constexpr std::size_t most_held = 256;

  /// The samples times hops of one trainer that count, at most. 0: any number.
  explicit gradient_book(std::uint64_t most_counted = 0) : most_counted_(most_counted) {}

  /// Keeps the gradient of a hop. A second one of the same hop replaces it, unless it has counted.
  /// At the limit the trainer's first one goes, and counts no more.
  void hold(pass_id pass, std::uint32_t hop, std::uint64_t samples, std::vector<float> gradient);
  /// The gradient counts. The sum is made in the order of these calls. Beyond the trainer's limit
  /// the answer is `unknown`.
  answer count(pass_id pass, std::uint32_t hop);

  /// Samples times hops in the sum.
  std::uint64_t samples() const noexcept { return samples_; }
  /// Gradients that wait.
  std::size_t held() const noexcept { return held_.size(); }
  bool has(pass_id pass, std::uint32_t hop) const { return held_.contains({pass, hop}); }
  /// The mean of the counted gradients; empty if none has counted.
  std::vector<float> mean() const;
  /// The sum; empty if none has counted.
  const std::vector<double>& sum() const noexcept { return sum_; }
  /// Forgets everything: a step was made.
  void clear() { *this = gradient_book(most_counted_); }

private:
  using key = std::pair<pass_id, std::uint32_t>;
  struct gradient {
    std::uint64_t samples = 0;
    std::vector<float> values;
  };
  std::map<key, gradient> held_;
  std::uint64_t most_counted_;
  std::set<key> counted_;
  std::map<peer_id, std::uint64_t> samples_of_;
  std::vector<double> sum_;
  std::uint64_t samples_ = 0;
};

} // namespace shoal::actors
