#include "actors/reachability/observations.hpp"
#include "scenarios/observe/observers/all.hpp"

#include <unordered_map>

namespace shoal::scenarios::observing {

namespace {

class reachability_observer final : public run_observer {
public:
  explicit reachability_observer(run_books& books) : true_reach_(books.options.true_reach) {}

  void on_observation(const seen_observation& seen) override {
    const auto* learned = actors::get_if<actors::reach_learned>(&seen.what);
    if (learned == nullptr) return;
    if (const auto found = believed_.find(seen.peer); found != believed_.end())
      found->second = learned->reach;
    if (learned->reach != actors::reach::unknown)
      ++(learned->reach == true_reach_(seen.machine) ? right_ : wrong_);
  }
  void on_peer_started(const seen_peer& seen) override {
    believed_[seen.peer] = actors::reach::unknown;
  }

  void finish(const end_facts&, summary& into) override {
    auto& totals = into.reachability.emplace();
    for (const auto& [peer, reach] : believed_)
      ++(reach == actors::reach::open            ? totals.open
         : reach == actors::reach::cone          ? totals.cone
         : reach == actors::reach::symmetric     ? totals.symmetric
         : reach == actors::reach::outbound_only ? totals.outbound_only
                                                 : totals.unknown);
    totals.right = right_;
    totals.wrong = wrong_;
  }

private:
  std::function<actors::reach(std::uint32_t machine)> true_reach_;
  std::unordered_map<actors::peer_id, actors::reach> believed_; // iterated only to count
  std::uint64_t right_ = 0, wrong_ = 0;
};

} // namespace

result<std::unique_ptr<run_observer>> reachability(run_books& books) {
  std::unique_ptr<run_observer> out;
  if (books.options.true_reach) out = std::make_unique<reachability_observer>(books);
  return out;
}

} // namespace shoal::scenarios::observing
