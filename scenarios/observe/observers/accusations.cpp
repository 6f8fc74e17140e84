#include "scenarios/observe/observers/all.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace shoal::scenarios::observing {

namespace {

class accusations_observer final : public run_observer {
public:
  explicit accusations_observer(run_books& books) : books_(books) {}

  void on_observation(const seen_observation& seen) override {
    if (const auto* bad = actors::get_if<actors::misbehaved>(&seen.what))
      add(bad->culprit, bad->why, seen.host);
    else if (const auto* ban = actors::get_if<actors::member_banned>(&seen.what))
      add(ban->culprit, "banned for " + ban->why, seen.host);
  }

  void finish(const end_facts&, summary& into) override {
    for (const auto& [what, one] : all_)
      into.accusations.push_back({what.first, what.second, one.times, one.reporters.size()});
    std::sort(into.accusations.begin(), into.accusations.end(), [](const auto& a, const auto& b) {
      return std::tuple(b.reporters, b.times, a.host, a.why) <
             std::tuple(a.reporters, a.times, b.host, b.why);
    });
  }

private:
  void add(actors::peer_id culprit, const std::string& why, std::string_view by) {
    auto& one = all_[{culprit == 0 ? std::string{} : books_.name_of(culprit), why}];
    ++one.times;
    one.reporters.emplace(by);
  }

  struct entry {
    std::uint64_t times = 0;
    std::set<std::string, std::less<>> reporters;
  };

  const run_books& books_;
  std::map<std::pair<std::string, std::string>, entry> all_; // by culprit and reason
};

} // namespace

result<std::unique_ptr<run_observer>> accusations(run_books& books) {
  return std::unique_ptr<run_observer>(std::make_unique<accusations_observer>(books));
}

} // namespace shoal::scenarios::observing
